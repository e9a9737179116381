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
  /** The person who logs in. */
  profile?: FakeProfile
  /** As in the authorize URL. */
  redirectUri?: string
  /** As in the authorize URL: S256 (RFC 7636). */
  codeChallenge?: string
  /** As in the authorize URL. */
  nonce?: string
  /** Separated by spaces; the response has an id_token if the scope contains `openid`. Default `openid email profile`. */
  scope?: string
  /** The application that an access token is for. Default: this provider's client. */
  issuedTo?: string
}

/** The result of a person's consent or refusal. */
export interface Authorization {
  /** Query parameters of the authorize URL. */
  params: URLSearchParams
  code: string
  state: string
  callbackUrl: string
  /** The query of `callbackUrl`; empty if the response is posted. */
  callbackQuery: Record<string, string>
  /** With `response_mode=form_post`: the fields that the browser posts to `callbackUrl`. Null if the response is in the query. */
  callbackForm: Record<string, string> | null
}

export interface JwtOptions {
  header?: Record<string, unknown>
  /** A private key, or a string for HMAC. Default: the provider's RSA key. */
  key?: KeyObject | string
}

/**
 * A provider on loopback, for tests: like OpenID Connect, GitHub and Apple. It behaves correctly until a test changes it.
 *
 * The token endpoint checks the client's credentials (form or Basic), the code (once), `redirect_uri` byte for byte and the PKCE S256
 * verifier. The userinfo and user endpoints check the bearer token; introspect and application check the client's credentials. Each
 * id_token is RS256 with kid `fake-1`. With `response_mode=form_post` the response is a form. Like Apple's, it has the person's name (field
 * `user`) once, if the scope has `name`. A client secret signed with the key of `appleOptions()` is accepted too.
 */
export interface FakeProvider {
  readonly issuer: string
  readonly authorizeUrl: string
  readonly tokenUrl: string
  readonly userinfoUrl: string
  readonly jwksUri: string
  /** Takes the place of GitHub's `https://api.github.com`. */
  readonly apiUrl: string
  readonly introspectionUrl: string
  readonly tokeninfoUrl: string
  readonly clientId: string
  readonly clientSecret: string
  /** The person who logs in, as claims. Change it, or pass another one to `authorize`. */
  profile: FakeProfile
  /** The same person as GitHub's API describes them. */
  githubProfile: FakeProfile
  /** Replaces the id_token of the response: an object is signed, null means none. */
  idToken: ((claims: Record<string, unknown>) => string | Record<string, unknown> | null) | null
  /** The requests so far, in order. */
  readonly requests: FakeRequest[]
  readonly authorizations: Authorization[]
  /** TCP connections accepted so far. */
  readonly connectionCount: number
  requestsTo(endpoint: FakeEndpoint): FakeRequest[]
  /** Replaces an endpoint, for example with `answer(503, {})`; null restores the original. */
  on(endpoint: FakeEndpoint, handler: FakeHandler | null): void
  /**
   * The person consents: takes the Location of our login route, without HTTP, and returns what the callback gets. A browser that follows
   * the Location is redirected back at once as `profile`.
   * @throws Error if it is not this provider's authorize URL
   */
  authorize(url: string, options?: { profile?: FakeProfile }): Authorization
  /** The person refuses. */
  deny(url: string, error?: string): Authorization
  /** Returns a code without any URL, for tests that call `client.exchangeCode()` themselves. */
  issueCode(options?: CodeOptions): string
  /** Returns an access token as a native app gets it. */
  issueAccessToken(options?: CodeOptions): string
  idTokenClaims(options?: CodeOptions): Record<string, unknown>
  /** Signs any claims with any key. */
  signJwt(claims: unknown, options?: JwtOptions): string
  /** For `new OidcClient()`. */
  oidcOptions<Overrides extends object>(overrides?: Overrides): OidcOptions & Overrides
  /** For `new GoogleClient()`. */
  googleOptions<Overrides extends object>(overrides?: Overrides): BuiltInOptions & Overrides
  /** For `new AppleClient()`. */
  appleOptions<Overrides extends object>(overrides?: Overrides): AppleOptions & Overrides
  /** For `new GitHubClient()`. */
  githubOptions<Overrides extends object>(overrides?: Overrides): BuiltInOptions & Overrides
  /** Stops the server and closes every connection. */
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
