import { ConfigurationError } from '../core/errors'
import { createHttpClient, type HttpClient } from '../core/http-client'
import { requireAccessToken } from './access-token-kind'
import { requireEndpoint, requireStaleSeconds } from './client-options'
import { algorithmNamed, SIGNATURE_ALGORITHMS, type SignatureAlgorithm } from './jws'
import { createKeySet, verifyByKeySet } from './key-set'
import { checkClaims, readHeader, type TokenClaims } from './signed-token'

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
  /**
   * `at+jwt`: the verifier accepts only tokens with the header `typ: at+jwt` (RFC 9068). So the verifier never accepts an id_token as an
   * access token. Set this option if the provider sends this header.
   */
  typ?: 'at+jwt'
  /** Claims that are required in addition to `exp`, `iss` and `sub`. */
  requiredClaims?: readonly string[]
  /**
   * How long a key set is used after it was read, in seconds. Default 300. After 80 % of that time, the next use reads the set again in the
   * background.
   */
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
