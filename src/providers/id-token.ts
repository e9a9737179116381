import { AppError } from '../core/errors'
import type { IdTokenAlgorithm } from './jws'
import { type KeySet, verifyByKeySet } from './key-set'
import { unusableIdentity } from './provider-refusal'
import { checkClaims, readHeader, readUnverifiedClaims, reasonOf, signedTokenRefusal, type TokenClaims } from './signed-token'

export interface IdTokenRules {
  clientId: string
  acceptsIssuer(issuer: string, claims: Record<string, unknown>): boolean
  /** Null: no keys are known. The client trusts the token only because the token came directly from the token endpoint over TLS. */
  keySet: KeySet | null
  /** The nonce of the authorization request; undefined: the request had no nonce. */
  nonce: string | undefined
  /** The accepted signature algorithms: the algorithms that the client names, or else the algorithms that the provider lists. */
  algorithms: readonly IdTokenAlgorithm[]
  /** True: the id_token came from our own code exchange, so an attacker cannot have made the id_token. */
  isOwnExchange: boolean
  provider: string
  now: Date
}

/**
 * Verifies an id_token (OpenID Connect Core section 3.1.3.7). If a key set is known, checks the signature. Rule 6 allows a token without
 * this check if the token came directly from the token endpoint.
 *
 * @throws OAuthError when any rule fails, or the keys cannot be read
 */
export async function verifyIdToken(idToken: string, rules: IdTokenRules): Promise<TokenClaims> {
  try {
    const header = readHeader(idToken, rules.algorithms)
    const { keySet, isOwnExchange } = rules
    const claims = keySet ? await verifyByKeySet(keySet, idToken, header, { isOwnExchange }) : readUnverifiedClaims(idToken)
    const checked = checkClaims(claims, { acceptsIssuer: rules.acceptsIssuer, required: ['aud', 'iat'], now: rules.now })
    checkAudience(checked, rules.clientId)
    if (rules.nonce !== undefined && checked['nonce'] !== rules.nonce)
      throw signedTokenRefusal('nonce is not the nonce that was sent: the provider must repeat the nonce of the same login')
    return checked
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    throw unusableIdentity(rules.provider, `id_token refused: ${reasonOf(error)}`)
  }
}

/** Checks rules 3 to 5: `aud` must name this client. With several audiences, or if `azp` is present, `azp` must be this client. */
function checkAudience({ aud, azp }: TokenClaims, clientId: string): void {
  const audiences: unknown[] = Array.isArray(aud) ? aud : [aud]
  if (clientId === '' || !audiences.includes(clientId)) throw signedTokenRefusal('aud does not name this client: check clientId')
  if ((audiences.length > 1 || azp !== undefined) && azp !== clientId) throw signedTokenRefusal('azp is not this client: check clientId')
}
