import { createHash } from 'node:crypto'
import { OAuthTokenAudienceMismatchError } from '../core/errors'
import type { IdTokenAlgorithm } from './jws'
import { type KeySet, verifyByKeySet } from './key-set'
import { checkClaims, readHeader, signedTokenRefusal, type TokenClaims } from './signed-token'

export interface InHandRules {
  /** `clientId` and `extraAudiences`. */
  accepted: readonly string[]
  acceptsIssuer(issuer: string, claims: Record<string, unknown>): boolean
  keySet: KeySet
  /** The accepted signature algorithms: the algorithms that the client names, or else the algorithms that the provider lists. */
  algorithms: readonly IdTokenAlgorithm[]
  /** The nonce that the app sent. Null: the app sent no nonce. */
  nonce: string | null
  now: Date
}

/**
 * The maximum age of an id_token, in seconds. The system's sign-in dialog returns a new token at once. An older token was stored by an app
 * or an attacker.
 */
const oldestSeconds = 600

/**
 * Verifies an id_token that an app sent, and returns its claims (OpenID Connect Core section 3.1.3.7). The signature shows who issued the
 * token. Only the nonce and single use protect against a stolen token. The caller checks whether the token was already used.
 *
 * @throws OAuthTokenAudienceMismatchError (another application's), OAuthTokenRejectedError (any other rule)
 * @throws OAuthProviderUnavailableError (the keys cannot be read)
 */
export async function verifyIdTokenInHand(idToken: string, rules: InHandRules): Promise<TokenClaims> {
  const header = readHeader(idToken, rules.algorithms)
  const signed = await verifyByKeySet(rules.keySet, idToken, header)
  const claims = checkClaims(signed, { acceptsIssuer: rules.acceptsIssuer, required: ['aud', 'iat'], now: rules.now })
  refuseOtherThanIdTokens(header.typ, claims)
  requireParties(claims, rules.accepted)
  if (Number(claims['iat']) < rules.now.getTime() / 1000 - oldestSeconds)
    throw signedTokenRefusal('the id_token is older than 10 minutes (iat)')
  requireNonce(claims, rules.nonce)
  return claims
}

/** Rejects access tokens and logout tokens. These tokens can have the issuer, keys and audience of an id_token (RFC 8725 section 3.11). */
function refuseOtherThanIdTokens(headerType: string | null, claims: TokenClaims): void {
  const { typ, token_use: use, events } = claims
  const isOtherHeader = headerType !== null && headerType.toLowerCase() !== 'jwt'
  const isOtherName = [typ, use].some((name) => typeof name === 'string' && !['id', 'id_token', 'jwt'].includes(name.toLowerCase()))
  if (isOtherHeader || isOtherName || events !== undefined) throw signedTokenRefusal('the token is not an id_token')
}

/**
 * Requires that `aud` names this application. `azp` names the client that requested the token. If `azp` is present, it must name us. If the
 * token has several audiences, `azp` must be present.
 */
function requireParties({ aud, azp }: TokenClaims, accepted: readonly string[]): void {
  const isOurs = (id: unknown) => typeof id === 'string' && id !== '' && accepted.includes(id)
  const audiences: unknown[] = Array.isArray(aud) ? aud : [aud]
  const isNamed = audiences.some(isOurs)
  const isAskedByUs = azp === undefined || azp === null ? audiences.length === 1 : isOurs(azp)
  if (!isNamed || !isAskedByUs) throw new OAuthTokenAudienceMismatchError()
}

/** Requires the app's nonce. Apple's sign-in dialog puts the SHA-256 of the nonce into the token, in hex. */
function requireNonce({ nonce }: TokenClaims, given: string | null): void {
  if (nonce === undefined && given === null) return
  const spellings = given === null ? [] : [given, createHash('sha256').update(given, 'utf8').digest('hex')]
  if (typeof nonce !== 'string' || !spellings.includes(nonce)) throw signedTokenRefusal('nonce is not the one that the app sent along')
}
