import { ConfigurationError } from '../errors'
import type { HttpClient } from '../http-client'
import { type ClientCredentials, checkClientCredentials } from './client-authentication'
import { isPlainObject } from './provider-request'

export interface OAuthClientOptions extends ClientCredentials {
  /** Default: `{publicUrl}{prefix}/oauth/{key}/callback`. */
  redirectUri?: string
  /** The project's other client ids (mobile apps), accepted beside `clientId` for a token in hand. */
  extraAudiences?: readonly string[]
  /** What to ask the provider for. Default `openid`, `email` and `profile`; of GitHub `read:user` and `user:email`. */
  scopes?: readonly string[]
  /** Should equal the registration key, which is what is stored. */
  providerName?: string
  /** Shared with other clients; default: one of its own (10 s, circuit breaker off). */
  httpClient?: HttpClient
  /** PKCE S256; default true. */
  pkce?: boolean
  /** False: what this provider says of `email_verified` does not count. Default true. */
  trustEmail?: boolean
  /**
   * True: this provider asks for a new sign-in whenever the request says `prompt=login`, so that coming back from it confirms a person,
   * although its id_token has no `auth_time`. Default false: only an `auth_time` confirms.
   */
  reauthenticates?: boolean
  /** What the provider asks of the person each time: `login`, `consent`, `select_account` or `none`, several separated by blanks. */
  prompt?: string
  /** Further parameters of the address where the browser goes to log in, such as `{ hd: 'example.com' }`. Names that we set are refused. */
  authorizeParams?: Readonly<Record<string, string>>
  /** For the two built-in clients: other addresses than the public ones (GitHub Enterprise, tests). */
  endpoints?: ProviderEndpoints
}

/** What a client with a key set takes besides. */
export interface KeySetClientOptions extends OAuthClientOptions {
  /** How long the provider's last good key set serves while it cannot be read again, in seconds since it was read. Default 86400; 0: off. */
  staleIfErrorSeconds?: number
  /** The longest time since the person signed in at the provider, in seconds; an `auth_time` that is missing or older is refused (502). */
  maxAgeSeconds?: number
  /** True: `GET /oauth/:provider/login?login_hint=…` is passed on, 1 to 320 visible characters. Default false. */
  loginHint?: boolean
  /** True: the request is pushed to the provider first (RFC 9126). Default: where the provider's document requires it. */
  par?: boolean
  /** `form_post`: the browser brings the answer back in a form, by POST. It needs `cookieSecure`. Default: in the query of a redirect. */
  responseMode?: 'form_post'
}

/** The addresses of a provider, each instead of the public one. */
export interface ProviderEndpoints {
  /** Where the browser goes to log in. */
  authorizeUrl?: string
  /** Where a code is exchanged for tokens. */
  tokenUrl?: string
  /** Where the profile is read. */
  userinfoUrl?: string
  /** Who a token was issued to. */
  tokeninfoUrl?: string
  /** RFC 7662: who a token was issued to. */
  introspectionUrl?: string
  /** Where the provider publishes its keys. */
  jwksUri?: string
  /** Compared with an id_token's `iss` exactly. */
  issuer?: string
  /** GitHub's API. */
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
] as const

export const KEY_SET_OPTIONS = [...COMMON_OPTIONS, 'staleIfErrorSeconds', 'maxAgeSeconds', 'loginHint', 'par', 'responseMode'] as const

/** @throws ConfigurationError naming the first option that is unknown or malformed; never its value */
export function checkClientOptions(owner: string, options: OAuthClientOptions, allowed: readonly string[]): void {
  if (typeof options !== 'object' || options === null) throw new ConfigurationError(`${owner}: pass an options object.`)
  const unknown = Object.keys(options).find((name) => !allowed.includes(name))
  if (unknown !== undefined) throw new ConfigurationError(`${owner}: unknown option ${unknown}.`)
  for (const [name, isRight, fix] of RULES) {
    if (!isRight(options[name])) throw new ConfigurationError(`${owner}: ${name} must be ${fix}.`)
  }
  checkClientCredentials(owner, options)
  if (options.redirectUri !== undefined) requireEndpoint(owner, 'redirectUri', options.redirectUri)
}

/** What every login sets by itself, or by an option of its own. */
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
  ['clientId', isText, 'a string (empty only where no provider is to be asked)'],
  // A plain string would match by substring (CVE-2022-39231): a list, compared element by element.
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
  ['authorizeParams', optional(isAuthorizeParams), `an object of strings, without ${OWN_PARAMETERS.join(', ')}`],
]

function isAuthorizeParams(value: unknown): boolean {
  return (
    isPlainObject(value) && Object.entries(value).every(([name, text]) => isText(text) && name !== '' && !OWN_PARAMETERS.includes(name))
  )
}

/** @throws ConfigurationError for what only clients of OpenID Connect take */
export function checkKeySetOptions(
  owner: string,
  { staleIfErrorSeconds, maxAgeSeconds, loginHint, par, scopes, responseMode }: KeySetClientOptions,
): void {
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

/** Returns what a client adds to the address where the browser goes to log in (OpenID Connect Core section 3.1.2.1). */
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

/**
 * RFC 6749 sections 3.1 and 3.2: an absolute https URL without a fragment. Plain http is for loopback only: a secret or
 * a code would cross the network in clear.
 *
 * @throws ConfigurationError
 */
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

/** The whole of 127.0.0.0/8, ::1, and the names RFC 6761 section 6.3 keeps for it. */
function isLoopback(hostname: string): boolean {
  return /^127(?:\.\d{1,3}){3}$/.test(hostname) || hostname === '[::1]' || hostname === 'localhost' || hostname.endsWith('.localhost')
}

/** The addresses of a built-in client: the public ones, or what `endpoints` says. */
export function mergeEndpoints<Known extends ProviderEndpoints>(owner: string, known: Known, given: ProviderEndpoints | undefined): Known {
  const unknown = Object.keys(given ?? {}).find((name) => !Object.hasOwn(known, name))
  if (unknown !== undefined) throw new ConfigurationError(`${owner}: endpoints.${unknown} is not an endpoint of this client.`)
  const overrides = Object.entries(given ?? {}).filter(([, value]) => value !== undefined)
  for (const [name, value] of overrides) requireEndpoint(owner, `endpoints.${name}`, value)
  return { ...known, ...Object.fromEntries(overrides) }
}
