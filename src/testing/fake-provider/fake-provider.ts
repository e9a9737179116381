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
  /** The `redirect_uri` of the authorize URL. */
  redirectUri?: string
  /** The `code_challenge` of the authorize URL: S256 (RFC 7636). */
  codeChallenge?: string
  /** The `nonce` of the authorize URL. */
  nonce?: string
  /** Separated by spaces. If the scope contains `openid`, the response has an id_token. Default `openid email profile`. */
  scope?: string
  /** The application that an access token is for. Default: this provider's client. */
  issuedTo?: string
}

/** The result of a person's consent or refusal. */
export interface Authorization {
  /** The query parameters of the authorize URL. */
  params: URLSearchParams
  code: string
  state: string
  callbackUrl: string
  /** The query of `callbackUrl`. Empty if the browser posts the response. */
  callbackQuery: Record<string, string>
  /** With `response_mode=form_post`: the fields that the browser posts to `callbackUrl`. Null: the response is in the query. */
  callbackForm: Record<string, string> | null
}

export interface JwtOptions {
  header?: Record<string, unknown>
  /** A private key, or a string for HMAC. Default: the provider's RSA key. */
  key?: KeyObject | string
}

/**
 * A provider on loopback, for tests. It has the endpoints of OpenID Connect, GitHub and Apple. The provider follows the standards until a
 * test changes it.
 *
 * The token endpoint checks the client's credentials, in the form or by Basic. The endpoint accepts a code once. The endpoint also checks
 * `redirect_uri` byte for byte, and the PKCE S256 verifier. The userinfo and user endpoints check the bearer token. The introspect and
 * application endpoints check the client's credentials. Each id_token is signed with RS256 and kid `fake-1`. With
 * `response_mode=form_post`, the response is a form. If the scope has `name`, the form contains the person's name once (field `user`), like
 * Apple's form. The token endpoint also accepts a client secret that is signed with the key of `appleOptions()`.
 */
export interface FakeProvider {
  readonly issuer: string
  readonly authorizeUrl: string
  readonly tokenUrl: string
  readonly userinfoUrl: string
  readonly jwksUri: string
  /** The URL that replaces GitHub's `https://api.github.com`. */
  readonly apiUrl: string
  readonly introspectionUrl: string
  readonly tokeninfoUrl: string
  readonly clientId: string
  readonly clientSecret: string
  /** The person who logs in, as claims. Change it, or pass another profile to `authorize`. */
  profile: FakeProfile
  /** The person who logs in, as GitHub's API describes a person. */
  githubProfile: FakeProfile
  /** Replaces the id_token of the response. An object gets signed, a string is sent unchanged, and null means no id_token. */
  idToken: ((claims: Record<string, unknown>) => string | Record<string, unknown> | null) | null
  /** The requests so far, in order. */
  readonly requests: FakeRequest[]
  readonly authorizations: Authorization[]
  /** The number of accepted TCP connections. */
  readonly connectionCount: number
  requestsTo(endpoint: FakeEndpoint): FakeRequest[]
  /** Replaces an endpoint, for example with `answer(503, {})`. Null restores the original endpoint. */
  on(endpoint: FakeEndpoint, handler: FakeHandler | null): void
  /**
   * Acts as a person who consents. Pass the Location of our login route. The method makes no HTTP request, and returns the data for the
   * callback. If a browser follows the Location instead, the provider shows no page: the person `profile` consents, and the browser is
   * redirected back.
   * @throws Error if the URL is not this provider's authorize URL
   */
  authorize(url: string, options?: { profile?: FakeProfile }): Authorization
  /** Acts as a person who refuses. Default `error`: `access_denied`. */
  deny(url: string, error?: string): Authorization
  /** Returns a code without an authorize URL, for tests that call `client.exchangeCode()` themselves. */
  issueCode(options?: CodeOptions): string
  /** Returns an access token, such as a native app gets from the provider. */
  issueAccessToken(options?: CodeOptions): string
  idTokenClaims(options?: CodeOptions): Record<string, unknown>
  /** Signs any claims with any key. */
  signJwt(claims: unknown, options?: JwtOptions): string
  /** Returns options for `new OidcClient()`. */
  oidcOptions<Overrides extends object>(overrides?: Overrides): OidcOptions & Overrides
  /** Returns options for `new GoogleClient()`. */
  googleOptions<Overrides extends object>(overrides?: Overrides): BuiltInOptions & Overrides
  /** Returns options for `new AppleClient()`. */
  appleOptions<Overrides extends object>(overrides?: Overrides): AppleOptions & Overrides
  /** Returns options for `new GitHubClient()`. */
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
