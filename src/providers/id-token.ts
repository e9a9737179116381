import { createHash } from 'node:crypto'
import { AppError, OAuthTokenAudienceMismatchError } from '../core/errors'
import { type KeySet, verifyByKeySet } from './key-set'
import { isPassportProvider, type Provider } from './passport-provider'
import type { OAuthTokens } from './provider-client'
import { unusableIdentity } from './provider-refusal'
import {
  CLOCK_SKEW_SECONDS,
  checkClaims,
  type IdTokenAlgorithm,
  readHeader,
  readUnverifiedClaims,
  reasonOf,
  signedTokenRefusal,
  type TokenClaims,
} from './signed-token'

export interface IdTokenRules {
  clientId: string
  acceptsIssuer(issuer: string, claims: Record<string, unknown>): boolean
  /** Null: no keys are known. The token is trusted only because it came directly from the token endpoint over TLS. */
  keySet: KeySet | null
  /** Of the authorization request. Undefined: the request had no nonce. */
  nonce: string | undefined
  /** Those that the client names, or else those that the provider lists. */
  algorithms: readonly IdTokenAlgorithm[]
  /** The id_token came from our own code exchange, so an attacker cannot have made it. */
  isOwnExchange: boolean
  provider: string
  now: Date
}

/**
 * OpenID Connect Core section 3.1.3.7. Rule 6: a token directly from the token endpoint needs no check of the signature.
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

/** Rules 3 to 5: `aud` must name this client. With several audiences, or if `azp` is present, `azp` must be this client. */
function checkAudience({ aud, azp }: TokenClaims, clientId: string): void {
  const audiences: unknown[] = Array.isArray(aud) ? aud : [aud]
  if (clientId === '' || !audiences.includes(clientId)) throw signedTokenRefusal('aud does not name this client: check clientId')
  if ((audiences.length > 1 || azp !== undefined) && azp !== clientId) throw signedTokenRefusal('azp is not this client: check clientId')
}

interface InHandRules {
  accepted: readonly string[]
  acceptsIssuer(issuer: string, claims: Record<string, unknown>): boolean
  keySet: KeySet
  /** Those that the client names, or else those that the provider lists. */
  algorithms: readonly IdTokenAlgorithm[]
  /** Null: the app sent no nonce. */
  nonce: string | null
  now: Date
}

/** The system's sign-in dialog returns a new token at once. An older token was stored by an app or an attacker. */
const oldestSeconds = 600

/**
 * OpenID Connect Core section 3.1.3.7. The signature shows who issued the token. Only the nonce and single use protect against a stolen
 * token. The caller checks whether the token was already used.
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

/** Access and logout tokens can have the issuer, keys and audience of an id_token (RFC 8725 section 3.11). */
function refuseOtherThanIdTokens(headerType: string | null, claims: TokenClaims): void {
  const { typ, token_use: use, events } = claims
  const isOtherHeader = headerType !== null && headerType.toLowerCase() !== 'jwt'
  const isOtherName = [typ, use].some((name) => typeof name === 'string' && !['id', 'id_token', 'jwt'].includes(name.toLowerCase()))
  if (isOtherHeader || isOtherName || events !== undefined) throw signedTokenRefusal('the token is not an id_token')
}

/** `azp` names the client that requested the token. If present, it must name us. With several audiences, it must be present. */
function requireParties({ aud, azp }: TokenClaims, accepted: readonly string[]): void {
  const isOurs = (id: unknown) => typeof id === 'string' && id !== '' && accepted.includes(id)
  const audiences: unknown[] = Array.isArray(aud) ? aud : [aud]
  const isNamed = audiences.some(isOurs)
  const isAskedByUs = azp === undefined || azp === null ? audiences.length === 1 : isOurs(azp)
  if (!isNamed || !isAskedByUs) throw new OAuthTokenAudienceMismatchError()
}

/** Apple's sign-in dialog puts the SHA-256 of the nonce into the token, in hex. */
function requireNonce({ nonce }: TokenClaims, given: string | null): void {
  if (nonce === undefined && given === null) return
  const spellings = given === null ? [] : [given, createHash('sha256').update(given, 'utf8').digest('hex')]
  if (typeof nonce !== 'string' || !spellings.includes(nonce)) throw signedTokenRefusal('nonce is not the one that the app sent along')
}

export function canVerifySignIn(client: Provider): boolean {
  if (isPassportProvider(client)) return false // a profile does not say when the person signed in
  return client.reauthenticates === true || (typeof client.authTimeOf === 'function' && client.scopes.includes('openid'))
}

/**
 * `auth_time` decides, or else the host's option `reauthenticates`. Many providers ignore `prompt=login` (OpenID Connect Core section
 * 3.1.2.1) and use an older session. The provider's clock can be `CLOCK_SKEW_SECONDS` behind, so an earlier sign-in within that time counts
 * too.
 * @param since seconds since 1970
 */
export function verifiesSignIn(client: Provider, tokens: OAuthTokens, since: number): boolean {
  if (isPassportProvider(client)) return false
  const authTime: unknown = client.authTimeOf?.(tokens) ?? null
  return typeof authTime === 'number' ? authTime >= since - CLOCK_SKEW_SECONDS : client.reauthenticates === true
}
