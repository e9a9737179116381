import type { OAuthUser } from '../store/auth-store'

export type { OAuthUser }

/** A response of the token endpoint (RFC 6749 section 5.1). */
export interface OAuthTokens {
  accessToken: string
  tokenType: string
  refreshToken: string | null
  /** OpenID Connect only. Verify the token before you trust it. */
  idToken: string | null
  /** The lifetime of the access token, in seconds. */
  expiresIn: number | null
  scope: string | null
  /** The whole response. doorward never stores it. */
  raw: Record<string, unknown>
  /** The result of the verification of a token that an app sent. Absent after a code exchange. */
  proof?: TokenProof
}

/** The facts that the verification of an app's token found. The provider issued the token to this application. */
export interface TokenProof {
  /** The subject of the token, as `fetchUser` spells it. doorward rejects a profile of another subject (401). */
  subject?: string
  /** The provider's response, or the verified claims. `fetchUser` finds the claims in `tokens.proof`. */
  claims?: Record<string, unknown>
}

export interface CodeExchange {
  code: string
  /** The redirect URI of the authorization request, byte for byte (RFC 6749 section 4.1.3). */
  redirectUri: string
  /** The PKCE verifier (RFC 7636 section 4.5). Absent if PKCE is off for the provider. */
  codeVerifier?: string
  /** The nonce that the id_token must have (OpenID Connect Core section 3.1.3.7). Absent without the scope `openid`. */
  nonce?: string
}

/** An identity provider. Implement this interface if doorward has no client for the provider, and the provider has no OpenID Connect. */
export interface ProviderClient {
  readonly providerName: string
  readonly clientId: string
  readonly authorizeUrl: string
  readonly tokenUrl: string
  readonly scopes: readonly string[]
  /** The URL where the provider sends the browser back. Default: `{publicUrl}{prefix}/oauth/{key}/callback`. */
  readonly redirectUri?: string
  /** The mark on the provider's button of the built-in pages: one `<svg>` element. Absent: a mark of ours, or none. */
  readonly icon?: string
  /** PKCE S256; false for a provider that rejects PKCE. Default true. */
  readonly pkce?: boolean
  /** If the callback has an `iss`, it must equal this issuer (RFC 9207). Absent: doorward does not check `iss`. */
  readonly issuer?: string
  /** True: this provider always sends `iss`, so doorward rejects a callback without `iss` (RFC 9207 section 2.3). */
  readonly requiresIssuerParameter?: boolean
  /** How the callback comes. `form_post`: by POST (OAuth 2.0 Form Post Response Mode), needs `cookieSecure`. Absent: a redirect. */
  readonly responseMode?: 'form_post'
  /** Reads only the name from the unsigned form field `user` of a `form_post` callback, for a profile without a name. */
  nameOfForm?(user: string): string | null
  /** True: after `prompt=login`, always asks for a new sign-in, although it sends no time. Otherwise only `auth_time` shows one. */
  readonly reauthenticates?: boolean
  /** When the person signed in at the provider, in seconds since 1970 (the verified `auth_time`). Null: no `auth_time`. */
  authTimeOf?(tokens: OAuthTokens): number | null
  /** Further parameters of the authorization URL. */
  readonly authorizeParams?: Readonly<Record<string, string>>
  /** True: a login passes its `login_hint` to the provider. */
  readonly loginHint?: boolean
  /** Ends the browser's session at the provider (OpenID Connect RP-Initiated Logout 1.0). Null or absent: no such endpoint. */
  readonly endSessionUrl?: string | null
  /**
   * Resolves when `authorizeUrl` and `tokenUrl` are known. Before that, the two URLs can be empty. doorward calls this method before each
   * login and callback.
   *
   * @throws OAuthProviderUnavailableError when the URLs cannot be discovered now
   */
  prepare?(): Promise<void>
  /** Starts the discovery that `prepare` waits for. `key` is the registration key. Call `onFailure` for each failure. */
  prepareInBackground?(key: string, onFailure: (error: unknown) => void): void
  /**
   * Pushes the authorization request to the provider (RFC 9126). Gets the authorization URL, and returns the URL for the browser.
   *
   * @throws OAuthProviderUnavailableError when the provider does not accept the request
   */
  pushAuthorizationRequest?(authorizationUrl: string): Promise<string>
  /** Sets the clock. `createAuthRouter` calls this method with its `now`. Check the times of tokens by this clock. */
  useClock?(now: () => Date): void
  /** Exchanges the code for tokens. @throws OAuthError when the provider refuses or its response cannot be used */
  exchangeCode(input: CodeExchange): Promise<OAuthTokens>
  /** Reads the profile. @throws OAuthError when the provider refuses or its response cannot be used */
  fetchUser(tokens: OAuthTokens): Promise<OAuthUser>
  /**
   * Verifies that a token was issued to this application. Resolves with further facts, if the verification found any. doorward calls this
   * method before it reads the profile. Absent: doorward rejects a token from an app (501).
   *
   * @throws OAuthTokenAudienceMismatchError (another application's), OAuthTokenRejectedError (not valid), OAuthProviderUnavailableError
   * (try again), OAuthError
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: a method that only checks returns void, and `undefined` would not allow void
  verifyTokenAudience?(accessToken: string): Promise<TokenProof | void>
  /**
   * Verifies an app's id_token. The token must have a valid signature, and be from this provider and for this application. The token must
   * be at most 10 minutes old, and have this nonce. Resolves with tokens for `fetchUser`. `proof.claims` are the claims of the id_token,
   * with `exp`. Absent: doorward rejects an id_token from an app (501).
   *
   * @param nonce the app's nonce; the token has this nonce itself, or its SHA-256 in hex. Null: reject a token that has a nonce
   * @throws OAuthTokenAudienceMismatchError, OAuthTokenRejectedError, OAuthProviderUnavailableError, OAuthError
   */
  verifyIdToken?(idToken: string, nonce: string | null): Promise<OAuthTokens>
}
