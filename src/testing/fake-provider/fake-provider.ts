import type { KeyObject } from 'node:crypto'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'

export type FakeEndpoint =
  | 'authorize'
  | 'token'
  | 'userinfo'
  | 'jwks'
  | 'discovery'
  | 'user'
  | 'introspect'
  | 'tokeninfo'
  | 'application'
  | 'elsewhere'
export type FakeProfile = Record<string, unknown>

export interface FakeRequest {
  endpoint: FakeEndpoint
  method: string
  /** Path and query. */
  url: string
  headers: IncomingHttpHeaders
  body: string
  form: URLSearchParams
}

export type FakeHandler = (request: FakeRequest, response: ServerResponse) => void | Promise<void>

export interface CodeOptions {
  /** Who signs in. */
  profile?: FakeProfile
  /** As the authorize URL had it. */
  redirectUri?: string
  /** As the authorize URL had it: S256 (RFC 7636). */
  codeChallenge?: string
  /** As the authorize URL had it. */
  nonce?: string
  /** Space separated; an id_token comes back when it has `openid`. Default `openid email profile`. */
  scope?: string
  /** The application an access token is for. Default: this provider's client. */
  issuedTo?: string
}

/** What one person's yes or no came to. */
export interface Authorization {
  /** Of the authorize URL. */
  params: URLSearchParams
  code: string
  state: string
  callbackUrl: string
  /** The query of `callbackUrl`; empty when the answer is posted. */
  callbackQuery: Record<string, string>
  /** With `response_mode=form_post`: the fields that the browser posts to `callbackUrl`. Null: the query has the answer. */
  callbackForm: Record<string, string> | null
}

export interface JwtOptions {
  header?: Record<string, unknown>
  /** A private key, or a string for HMAC. Default: the provider's RSA key. */
  key?: KeyObject | string
}

/**
 * A provider on loopback, for tests: OpenID Connect, GitHub and Apple shaped, honest until told otherwise.
 *
 * The token endpoint checks the client's credentials (form or Basic), the code (once), `redirect_uri` byte for byte and the
 * PKCE S256 verifier; userinfo and user check the bearer token; introspect and application check the client's credentials.
 * id_tokens are RS256 with kid `fake-1`. With `response_mode=form_post` the answer is a form, and like Apple it has the person's name (field
 * `user`) once, when `name` was asked for. A client secret signed with the key of `appleOptions()` passes too.
 */
export interface FakeProvider {
  readonly issuer: string
  readonly authorizeUrl: string
  readonly tokenUrl: string
  readonly userinfoUrl: string
  readonly jwksUri: string
  /** GitHub's `https://api.github.com`. */
  readonly apiUrl: string
  readonly introspectionUrl: string
  readonly tokeninfoUrl: string
  readonly clientId: string
  readonly clientSecret: string
  /** Who logs in, as claims; change it, or give another with `authorize`. */
  profile: FakeProfile
  /** The same as GitHub's API says it. */
  githubProfile: FakeProfile
  /** Replaces the id_token of the response: an object is signed, null means none. */
  idToken: ((claims: Record<string, unknown>) => string | Record<string, unknown> | null) | null
  /** What arrived, in order. */
  readonly requests: FakeRequest[]
  readonly authorizations: Authorization[]
  /** TCP connections accepted so far. */
  readonly connectionCount: number
  requestsTo(endpoint: FakeEndpoint): FakeRequest[]
  /** Replaces an endpoint, with `answer(503, {})` say; null puts the honest one back. */
  on(endpoint: FakeEndpoint, handler: FakeHandler | null): void
  /**
   * The person says yes: takes the Location our login route answered, without HTTP, and returns what the callback gets.
   * A browser that follows the Location is sent back at once as `profile`.
   * @throws Error when it is not this provider's authorize URL
   */
  authorize(url: string, options?: { profile?: FakeProfile }): Authorization
  /** The person says no. */
  deny(url: string, error?: string): Authorization
  /** A code without any URL, for tests that call `client.exchangeCode()` themselves. */
  issueCode(options?: CodeOptions): string
  /** An access token as a native app has it in hand. */
  issueAccessToken(options?: CodeOptions): string
  idTokenClaims(options?: CodeOptions): Record<string, unknown>
  /** Signs anything with anything. */
  signJwt(claims: unknown, options?: JwtOptions): string
  /** For `new OidcClient()`. */
  oidcOptions<Overrides extends object>(overrides?: Overrides): OidcOptions & Overrides
  /** For `new GoogleClient()`. */
  googleOptions<Overrides extends object>(overrides?: Overrides): BuiltInOptions & Overrides
  /** For `new AppleClient()`. */
  appleOptions<Overrides extends object>(overrides?: Overrides): AppleOptions & Overrides
  /** For `new GitHubClient()`. */
  githubOptions<Overrides extends object>(overrides?: Overrides): BuiltInOptions & Overrides
  /** Ends every connection too. */
  close(): Promise<void>
}

export interface OidcOptions {
  clientId: string
  clientSecret: string
  authorizeUrl: string
  tokenUrl: string
  userinfoUrl: string
  jwksUri: string
  issuer: string
}

export interface AppleOptions {
  clientId: string
  teamId: string
  keyId: string
  privateKey: KeyObject
  endpoints: Record<string, string>
}

export interface BuiltInOptions {
  clientId: string
  clientSecret: string
  endpoints: Record<string, string>
}
