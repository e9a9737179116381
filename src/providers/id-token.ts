import { AppError, OAuthError } from '../errors'
import { SIGNATURE_ALGORITHMS } from './jws'
import type { KeySet } from './key-set'
import { checkClaims, readHeader, readUnverifiedClaims, refused, type TokenClaims, verifySignature } from './signed-token'

export interface IdTokenRules {
  clientId: string
  acceptsIssuer(issuer: string): boolean
  /** Null: no keys are known, and the token is believed only for having come straight from the token endpoint over TLS. */
  keySet: KeySet | null
  /** What the authorization request sent; undefined: none was sent. */
  nonce: string | undefined
  provider: string
  now: Date
}

/**
 * OpenID Connect Core section 3.1.3.7. The signature may be left out only by rule 6 (direct from the token endpoint).
 *
 * @throws OAuthError when any rule fails, or the keys cannot be read
 */
export async function verifyIdToken(idToken: string, rules: IdTokenRules): Promise<TokenClaims> {
  try {
    const header = readHeader(idToken, SIGNATURE_ALGORITHMS)
    const claims = rules.keySet
      ? verifySignature(idToken, (await rules.keySet.find(header)).key, header.alg)
      : readUnverifiedClaims(idToken)
    const checked = checkClaims(claims, { acceptsIssuer: rules.acceptsIssuer, required: ['aud', 'iat'], now: rules.now })
    checkAudience(checked, rules.clientId)
    if (rules.nonce !== undefined && checked['nonce'] !== rules.nonce) throw refused('nonce is not the one that was sent')
    return checked
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    throw new OAuthError({ details: { provider: rules.provider, status: null, body: null }, cause: error.cause ?? error })
  }
}

/** Rules 3 to 5: issued for us; with several audiences, or a named party, by us. */
function checkAudience({ aud, azp }: TokenClaims, clientId: string): void {
  const audiences: unknown[] = Array.isArray(aud) ? aud : [aud]
  if (clientId === '' || !audiences.includes(clientId)) throw refused('aud does not name this client')
  if ((audiences.length > 1 || azp !== undefined) && azp !== clientId) throw refused('azp is not this client')
}
