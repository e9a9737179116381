import { ConfigurationError, OAuthTokenAudienceMismatchError } from '../core/errors'
import { createHttpClient, type HttpClient } from '../core/http-client'
import { requireEndpoint, requireStaleSeconds } from './client-options'
import { createKeySet, verifyByKeySet } from './key-set'
import { isPlainObject } from './provider-request'
import {
  algorithmNamed,
  checkClaims,
  readHeader,
  SIGNATURE_ALGORITHMS,
  type SignatureAlgorithm,
  signedTokenRefusal,
  type TokenClaims,
} from './signed-token'

export interface TokenVerifier {
  /**
   * Verifies a provider's access token (a JWT) and returns its claims. The verifier calls the provider only for the key set. The verifier
   * does not check which client the token was issued to. The caller compares `aud`, `azp` and `client_id` with its own ids.
   *
   * @throws OAuthTokenRejectedError for a bad token; OAuthProviderUnavailableError when the key set cannot be read
   */
  verify(token: string): Promise<TokenClaims>
  /** Sets the clock. The client that has this verifier calls this method. The option `now` overrides this clock. */
  useClock?(now: () => Date): void
}

export interface TokenVerifierOptions {
  /** The issuer, which must equal `iss` exactly. */
  issuer: string
  /** The URL of the provider's public keys. */
  jwksUri: string
  /** The accepted algorithms, for example `['RS256']`. The verifier ignores `none` and HMAC algorithms, even if you list them. */
  algorithms: readonly string[]
  /** `at+jwt`: accepts only tokens with the header `typ: at+jwt` (RFC 9068), never an id_token. Set it if the provider sends it. */
  typ?: 'at+jwt'
  /** Claims that are required in addition to `exp`, `iss` and `sub`. */
  requiredClaims?: readonly string[]
  /** How long a key set is used, in seconds. Default 300. After 80 % of that time, the next use reads it again in the background. */
  lifespanSeconds?: number
  /** The least time between two fetches of the key set for an unknown `kid`, in seconds. Default 60. */
  minRefreshIntervalSeconds?: number
  /** How long the last good key set is used if a new read fails, in seconds since the last good read. Default 86400; 0: off. */
  staleIfErrorSeconds?: number
  /** The HTTP client that reads the keys. Default: a new HTTP client (10 s, circuit breaker off). */
  httpClient?: HttpClient
  /** The clock, for tests. Default: the router's clock, or the system's clock. */
  now?: () => Date
}

/** Creates a verifier for access tokens. @throws ConfigurationError for a missing or malformed option */
export function createTokenVerifier(options: TokenVerifierOptions): TokenVerifier {
  const algorithms = checkOptions(options)
  const { issuer, requiredClaims = [] } = options
  let now = options.now ?? (() => new Date())
  const keySet = createKeySet({ ...options, now: () => now(), httpClient: options.httpClient ?? createHttpClient() })
  return {
    async verify(token) {
      const header = readHeader(token, algorithms)
      const claims = await verifyByKeySet(keySet, token, header)
      requireAccessToken(header.typ, claims, { mustSayType: options.typ !== undefined })
      return checkClaims(claims, { acceptsIssuer: (value) => value === issuer, required: requiredClaims, now: now() })
    },
    useClock(clock) {
      now = options.now ?? clock
    },
  }
}

const OPTION_NAMES = [
  'issuer',
  'jwksUri',
  'algorithms',
  'typ',
  'requiredClaims',
  'lifespanSeconds',
  'minRefreshIntervalSeconds',
  'staleIfErrorSeconds',
  'httpClient',
  'now',
]

function checkOptions(options: TokenVerifierOptions): SignatureAlgorithm[] {
  const unknown = Object.keys(options).find((name) => !OPTION_NAMES.includes(name))
  if (unknown !== undefined) throw new ConfigurationError(`createTokenVerifier: unknown option ${unknown}.`)
  if (typeof options.issuer !== 'string' || options.issuer === '') throw missing('issuer', "the provider's issuer, exactly as in `iss`")
  requireEndpoint('createTokenVerifier', 'jwksUri', options.jwksUri)
  if (options.typ !== undefined && options.typ !== 'at+jwt') throw missing('typ', "'at+jwt', or left out")
  if (!isListOfText(options.requiredClaims ?? [])) throw missing('requiredClaims', 'an array of claim names')
  for (const name of ['lifespanSeconds', 'minRefreshIntervalSeconds'] as const) requireSeconds(name, options[name])
  requireStaleSeconds('createTokenVerifier', options.staleIfErrorSeconds)
  for (const name of ['httpClient', 'now'] as const) {
    if (options[name] !== undefined && typeof options[name] !== 'function') throw missing(name, 'a function')
  }
  return closedList(options.algorithms)
}

function closedList(named: readonly string[]): SignatureAlgorithm[] {
  if (!isListOfText(named)) throw missing('algorithms', "an array such as ['RS256']")
  const listed = named.map((name) => String(algorithmNamed(name)))
  const foreign = listed.some((name) => name.toLowerCase() !== 'none' && !/^HS\d+$/.test(name) && !isSignatureAlgorithm(name))
  const algorithms = listed.filter(isSignatureAlgorithm)
  if (foreign || algorithms.length === 0) throw missing('algorithms', `one or more of ${SIGNATURE_ALGORITHMS.join(', ')}`)
  return algorithms
}

function isSignatureAlgorithm(name: string): name is SignatureAlgorithm {
  return SIGNATURE_ALGORITHMS.some((algorithm) => algorithm === name)
}

function isListOfText(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'string' && item !== '')
}

function requireSeconds(name: string, value: unknown): void {
  if (value === undefined) return
  if (!Number.isInteger(value) || Number(value) < 1 || Number(value) > 86_400) throw missing(name, 'a whole number from 1 to 86400')
}

function missing(name: string, fix: string): ConfigurationError {
  return new ConfigurationError(`createTokenVerifier: ${name} must be ${fix}.`)
}

type Claims = Record<string, unknown>

/** Names of kinds, in the claim `typ` (Keycloak), the claim `token_use` (Cognito, Hydra) or the header's `typ`. */
const otherKinds = ['id', 'id_token', 'refresh', 'refresh_token', 'offline', 'logout']
const accessTokenNames = ['bearer', 'access', 'access_token']
/** OpenID Connect Core sections 2 and 3.3.2.11. */
const idTokenClaims = ['nonce', 'at_hash', 'c_hash', 's_hash']
const accessTokenClaims = ['azp', 'client_id', 'scope', 'scp']

/**
 * An id_token can have the issuer, keys and audience of an access token. But more parties see an id_token, so it must not work as an access
 * token (RFC 8725 section 3.11). The header `typ: at+jwt` makes an access token (RFC 9068 section 2.1).
 * @param mustSayType accept only tokens with the header `typ: at+jwt`
 * @throws OAuthTokenRejectedError
 */
function requireAccessToken(headerType: string | null, claims: Claims, { mustSayType }: { mustSayType: boolean }): void {
  const type = mediaType(headerType)
  const isNamed = isAccessTokenType(headerType)
  if (mustSayType && !isNamed)
    throw signedTokenRefusal("the header's typ is not at+jwt: have the provider set it, or leave typ out of createTokenVerifier()")
  if ((type.endsWith('+jwt') && !isNamed) || otherKinds.includes(type)) throw signedTokenRefusal('the token is of another kind')
  refuseNames(claims)
  if (!isNamed && idTokenClaims.some((name) => Object.hasOwn(claims, name))) throw signedTokenRefusal('the token is an id_token')
}

/**
 * A JWT that names this application only in `aud` can be an id_token. An access token also names its client or its scope.
 * @throws OAuthTokenRejectedError unless the header says that the JWT is an access token
 */
export function refusePossibleIdToken(headerType: string | null, claims: Claims): void {
  if (isAccessTokenType(headerType) || accessTokenClaims.some((name) => isSaid(claims[name]))) return
  throw signedTokenRefusal('the token may be an id_token: it has neither azp, client_id, scope nor scp, and its header no typ at+jwt')
}

function isAccessTokenType(headerType: string | null): boolean {
  return mediaType(headerType) === 'at+jwt'
}

/** In lower case, without the optional `application/` (RFC 7515 section 4.1.9). */
function mediaType(headerType: string | null): string {
  return (headerType ?? '').toLowerCase().replace(/^application\//, '')
}

/**
 * An introspection response has no JWT header. Some providers repeat the login's nonce in it: then a claim must say that the token is an
 * access token.
 * @throws OAuthTokenRejectedError
 */
export function refuseOtherKinds(claims: Claims): void {
  refuseNames(claims)
  const saysSo = namesIn(claims).some((name) => accessTokenNames.includes(name))
  if (!saysSo && idTokenClaims.some((name) => Object.hasOwn(claims, name))) throw signedTokenRefusal('the token is an id_token')
}

function refuseNames(claims: Claims): void {
  if (namesIn(claims).some((name) => otherKinds.includes(name))) throw signedTokenRefusal('the token is of another kind')
}

function namesIn({ typ, token_use: use }: Claims): string[] {
  return [typ, use].flatMap((name) => (typeof name === 'string' ? [name.toLowerCase()] : []))
}

function isSaid(value: unknown): boolean {
  return value !== undefined && value !== null
}

/**
 * The provider's claims decide. `azp` and `client_id` name the application that got the token. If one is present, it must name us.
 * Otherwise `aud` must name us. `aud` is the last choice, because it can list every service that accepts the token. Compares whole ids.
 * @throws OAuthTokenAudienceMismatchError also when the claims name no application
 */
export function requireAudience(claims: unknown, accepted: readonly string[]): void {
  if (!isPlainObject(claims) || !isOurs(claims, accepted)) throw new OAuthTokenAudienceMismatchError()
}

function isOurs({ azp, client_id: clientId, aud }: Record<string, unknown>, accepted: readonly string[]): boolean {
  const isAccepted = (id: unknown) => typeof id === 'string' && id !== '' && accepted.includes(id)
  const parties = [azp, clientId].filter((party) => party !== undefined && party !== null)
  if (parties.length > 0) return parties.every(isAccepted)
  return Array.isArray(aud) ? aud.some(isAccepted) : isAccepted(aud)
}
