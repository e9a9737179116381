import { ConfigurationError } from '../core/errors'
import type { HttpClient } from '../core/http-client'
import { type ClientCredentials, checkClientCredentials } from './client-authentication'
import { isPlainObject } from './provider-request'
import { algorithmNamed, type IdTokenAlgorithm, SIGNATURE_ALGORITHMS } from './signed-token'

export interface OAuthClientOptions extends ClientCredentials {
  /** The URL where the provider sends the browser back. Default: `{publicUrl}{prefix}/oauth/{key}/callback`. */
  redirectUri?: string
  /** Other client ids of your project (mobile apps). doorward accepts an app's token for `clientId` or for one of these ids. */
  extraAudiences?: readonly string[]
  /** The scopes to request. Default `openid`, `email` and `profile`; for GitHub `read:user` and `user:email`. */
  scopes?: readonly string[]
  /** The provider's name in errors. Use the registration key here, because doorward stores the registration key. */
  providerName?: string
  /** An HTTP client to share with other clients. Default: a new HTTP client (10 s, circuit breaker off). */
  httpClient?: HttpClient
  /** PKCE S256; default true. */
  pkce?: boolean
  /** False: doorward ignores this provider's `email_verified`. Default true. */
  trustEmail?: boolean
  /**
   * True: a login with `prompt=login` at this provider confirms a session, even if the id_token has no `auth_time`. Set it only if the
   * provider always asks for a new sign-in after `prompt=login`. Default false: only `auth_time` confirms a session.
   */
  reauthenticates?: boolean
  /** What the provider asks the person at each login: `login`, `consent`, `select_account` or `none`. Separate several values by blanks. */
  prompt?: string
  /** Further parameters of the authorization URL, such as `{ hd: 'example.com' }`. You cannot set a parameter that doorward sets. */
  authorizeParams?: Readonly<Record<string, string>>
  /**
   * The mark on the provider's button of the built-in pages: one `<svg>` element, at most 8,192 characters. Default: a mark of ours for the
   * built-in clients. The page shows the text as it is, so never take it from a stranger.
   */
  icon?: string
  /** For the built-in clients: URLs that replace the public URLs (GitHub Enterprise, tests). */
  endpoints?: ProviderEndpoints
}

/** The further options of a client with a key set. */
export interface KeySetClientOptions extends OAuthClientOptions {
  /** How long doorward uses the last good key set if a new read fails, in seconds since the last good read. Default 86400; 0: off. */
  staleIfErrorSeconds?: number
  /** The maximum time since the person signed in at the provider, in seconds. If `auth_time` is older or missing, the login fails (502). */
  maxAgeSeconds?: number
  /** True: `GET /oauth/:provider/login?login_hint=…` passes on a hint of 1 to 320 visible characters. Default false. */
  loginHint?: boolean
  /** True: pushes the authorization request to the provider first (RFC 9126). Default: if the discovery document requires it. */
  par?: boolean
  /** `form_post`: the browser sends the callback by POST, which needs `cookieSecure`. Default: a redirect with a query. */
  responseMode?: 'form_post'
  /**
   * The algorithms that the provider may sign id_tokens with. Default: the algorithms of the discovery document. `['HS256']`: the provider
   * signs with the client secret, which then needs 32 bytes or more. HS256 must be the only algorithm.
   */
  idTokenAlgorithms?: readonly IdTokenAlgorithm[]
}

/** A URL that you set replaces the public URL. */
export interface ProviderEndpoints {
  /** The authorization endpoint, where the browser goes to log in. */
  authorizeUrl?: string
  /** The token endpoint, where a code is exchanged for tokens. */
  tokenUrl?: string
  /** The URL of the profile. */
  userinfoUrl?: string
  /** The endpoint that names the client of a token. */
  tokeninfoUrl?: string
  /** The introspection endpoint (RFC 7662), which names the client of a token. */
  introspectionUrl?: string
  /** The URL of the provider's public keys. */
  jwksUri?: string
  /** The issuer, which must equal an id_token's `iss` exactly. */
  issuer?: string
  /** The URL of GitHub's API. */
  apiUrl?: string
}

export const COMMON_OPTIONS = [
  'clientId',
  'clientSecret',
  'clientAuthentication',
  'clientKey',
  'redirectUri',
  'extraAudiences',
  'scopes',
  'providerName',
  'httpClient',
  'pkce',
  'trustEmail',
  'reauthenticates',
  'prompt',
  'authorizeParams',
  'icon',
] as const

export const KEY_SET_OPTIONS = [
  ...COMMON_OPTIONS,
  'staleIfErrorSeconds',
  'maxAgeSeconds',
  'loginHint',
  'par',
  'responseMode',
  'idTokenAlgorithms',
] as const

/** @throws ConfigurationError naming the first option that is unknown or malformed; never its value */
export function checkClientOptions(owner: string, options: OAuthClientOptions, allowed: readonly string[]): void {
  if (typeof options !== 'object' || options === null) throw new ConfigurationError(`${owner}: pass an options object.`)
  const unknown = Object.keys(options).find((name) => !allowed.includes(name))
  if (unknown !== undefined) throw new ConfigurationError(`${owner}: unknown option ${unknown}.`)
  for (const [name, isRight, fix] of RULES) {
    if (!isRight(options[name])) throw new ConfigurationError(`${owner}: ${name} must be ${fix}.`)
  }
  checkClientCredentials(owner, options)
  if (options.clientAuthentication === 'none') requirePkce(owner, options)
  if (options.redirectUri !== undefined) requireEndpoint(owner, 'redirectUri', options.redirectUri)
}

/** Without a secret, PKCE alone binds a code to this app (RFC 9700 section 2.1.1). @throws ConfigurationError */
export function requirePkce(owner: string, { pkce = true }: Pick<OAuthClientOptions, 'pkce'>): void {
  if (pkce) return
  throw new ConfigurationError(
    `${owner}: clientAuthentication: 'none' needs pkce. Remove pkce: false, or use a client secret: otherwise who has a code can use it.`,
  )
}

/** Parameters that a login always sets, or that have their own option. */
const OWN_PARAMETERS = [
  ...['client_id', 'response_type', 'response_mode', 'redirect_uri', 'scope', 'state', 'nonce', 'code_challenge', 'code_challenge_method'],
  ...['prompt', 'max_age', 'login_hint', 'request', 'request_uri'],
]

const isText = (value: unknown) => typeof value === 'string'
const isTextList = (value: unknown) => Array.isArray(value) && value.every((item) => isText(item) && item !== '')
const isScopeList = (value: unknown) => isTextList(value) && (value as string[]).every((scope) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope)) // just checked
const isName = (value: unknown) => isText(value) && /^[\x21-\x7e]{1,64}$/.test(value as string) // just checked

function optional(isRight: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => value === undefined || isRight(value)
}

const RULES: readonly (readonly [keyof OAuthClientOptions, (value: unknown) => boolean, string])[] = [
  ['clientId', isText, 'a string (empty only if your service does not call the provider)'],
  // `includes` of a list compares whole ids. `includes` of a string would accept any part of it (CVE-2022-39231).
  ['extraAudiences', optional(isTextList), 'an array of non-empty client ids'],
  ['scopes', optional(isScopeList), 'an array of scope names, each without blanks'],
  ['providerName', optional(isName), '1 to 64 visible characters'],
  ['httpClient', optional((value) => typeof value === 'function'), 'a function, such as createHttpClient() returns'],
  ['pkce', optional((value) => typeof value === 'boolean'), 'true or false'],
  ['trustEmail', optional((value) => typeof value === 'boolean'), 'true or false'],
  ['reauthenticates', optional((value) => typeof value === 'boolean'), 'true or false'],
  [
    'prompt',
    optional((value) => isText(value) && /^[a-z_]+(?: [a-z_]+)*$/.test(String(value))),
    "a word such as 'select_account', or several with blanks between",
  ],
  ['icon', optional(isSvg), 'one <svg> element of at most 8192 characters'],
  ['authorizeParams', optional(isAuthorizeParams), `an object of strings, without ${OWN_PARAMETERS.join(', ')}`],
]

function isSvg(value: unknown): boolean {
  return isText(value) && String(value).length <= 8_192 && /^\s*<svg[\s>].*<\/svg>\s*$/s.test(String(value))
}

function isAuthorizeParams(value: unknown): boolean {
  return (
    isPlainObject(value) && Object.entries(value).every(([name, text]) => isText(text) && name !== '' && !OWN_PARAMETERS.includes(name))
  )
}

/** @throws ConfigurationError for an option that is malformed */
export function checkKeySetOptions(owner: string, options: KeySetClientOptions): void {
  const { staleIfErrorSeconds, maxAgeSeconds, loginHint, par, scopes, responseMode } = options
  checkAlgorithms(owner, options)
  requireStaleSeconds(owner, staleIfErrorSeconds)
  if (maxAgeSeconds !== undefined && (!Number.isInteger(maxAgeSeconds) || maxAgeSeconds < 0))
    throw new ConfigurationError(`${owner}: maxAgeSeconds must be a whole number from 0.`)
  if (maxAgeSeconds !== undefined && scopes !== undefined && !scopes.includes('openid'))
    throw new ConfigurationError(`${owner}: maxAgeSeconds needs the scope 'openid': only an id_token says when a person signed in.`)
  if (responseMode !== undefined && responseMode !== 'form_post')
    throw new ConfigurationError(`${owner}: responseMode must be 'form_post', or left out.`)
  for (const [name, value] of Object.entries({ loginHint, par })) {
    if (value !== undefined && typeof value !== 'boolean') throw new ConfigurationError(`${owner}: ${name} must be true or false.`)
  }
}

/** HS256 is never accepted beside another algorithm: its key is a secret, and the other keys are public (RFC 8725 section 2.1). */
function checkAlgorithms(owner: string, { idTokenAlgorithms: named, clientSecret = '' }: KeySetClientOptions): void {
  if (named === undefined) return
  const isKnown = (name: unknown) => name === 'HS256' || SIGNATURE_ALGORITHMS.some((algorithm) => algorithm === algorithmNamed(name))
  if (!Array.isArray(named) || named.length === 0 || !named.every(isKnown))
    throw new ConfigurationError(`${owner}: idTokenAlgorithms must be ['HS256'], or one or more of ${SIGNATURE_ALGORITHMS.join(', ')}.`)
  if (!named.includes('HS256')) return
  if (named.length > 1)
    throw new ConfigurationError(
      `${owner}: idTokenAlgorithms must not name HS256 beside another algorithm. Name the one that the provider signs this client's id_tokens with.`,
    )
  if (Buffer.byteLength(clientSecret) < 32)
    throw new ConfigurationError(
      `${owner}: idTokenAlgorithms: ['HS256'] needs a clientSecret of at least 32 bytes. Have the provider give you a longer secret, or sign with RS256 or ES256.`,
    )
}

/** OpenID Connect Core section 3.1.2.1. */
export function authorizeParamsOf({ prompt, maxAgeSeconds, authorizeParams }: KeySetClientOptions): Readonly<Record<string, string>> {
  return Object.freeze({
    ...authorizeParams,
    ...(prompt !== undefined && { prompt }),
    ...(maxAgeSeconds !== undefined && { max_age: String(maxAgeSeconds) }),
  })
}

/** @throws ConfigurationError */
export function requireStaleSeconds(owner: string, value: unknown): void {
  if (value === undefined || (Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 86_400)) return
  throw new ConfigurationError(`${owner}: staleIfErrorSeconds must be a whole number from 0 (off) to 86400.`)
}

/** https, without a fragment (RFC 6749 sections 3.1 and 3.2). Only loopback may use unencrypted http. @throws ConfigurationError */
export function requireEndpoint(owner: string, name: string, value: unknown): asserts value is string {
  if (!isEndpoint(value)) {
    throw new ConfigurationError(
      `${owner}: ${name} must be an absolute https URL without credentials and fragment (http only for a loopback host).`,
    )
  }
}

function isEndpoint(value: unknown): boolean {
  if (typeof value !== 'string' || /[\s\p{Cc}#\\]/u.test(value) || !URL.canParse(value)) return false
  const url = new URL(value)
  if (url.username !== '' || url.password !== '' || !/^https?:\/\//i.test(value)) return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))
}

/** Accepts 127.0.0.0/8, ::1, and the names that RFC 6761 section 6.3 reserves for loopback. */
function isLoopback(hostname: string): boolean {
  return /^127(?:\.\d{1,3}){3}$/.test(hostname) || hostname === '[::1]' || hostname === 'localhost' || hostname.endsWith('.localhost')
}

export function mergeEndpoints<Known extends ProviderEndpoints>(owner: string, known: Known, given: ProviderEndpoints | undefined): Known {
  const unknown = Object.keys(given ?? {}).find((name) => !Object.hasOwn(known, name))
  if (unknown !== undefined) throw new ConfigurationError(`${owner}: endpoints.${unknown} is not an endpoint of this client.`)
  const overrides = Object.entries(given ?? {}).filter(([, value]) => value !== undefined)
  for (const [name, value] of overrides) requireEndpoint(owner, `endpoints.${name}`, value)
  return { ...known, ...Object.fromEntries(overrides) }
}
