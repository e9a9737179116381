import type { OAuthUser } from '../store/auth-store'

export type { OAuthUser }

/** A response of the token endpoint (RFC 6749 section 5.1). */
export interface OAuthTokens {
  accessToken: string
  tokenType: string
  refreshToken: string | null
  /** OIDC only. Do not trust it before it is verified. */
  idToken: string | null
  /** The lifetime of the access token, in seconds. */
  expiresIn: number | null
  scope: string | null
  /** The whole response. Never stored. */
  raw: Record<string, unknown>
  /** For a token that an app sent, the result of `verifyTokenAudience`. Absent after a code exchange. */
  proof?: TokenProof
}

/** The facts that the verification of an app's token found, besides that it was issued to this application. */
export interface TokenProof {
  /** The subject of the token, in the spelling of `fetchUser`. A profile of another subject is refused (401). */
  subject?: string
  /** The provider's response, or the verified claims. `fetchUser` finds them in `tokens.proof`. */
  claims?: Record<string, unknown>
}

export interface CodeExchange {
  code: string
  /** The redirect URI of the authorization request, byte for byte (RFC 6749 section 4.1.3). */
  redirectUri: string
  /** The PKCE verifier (RFC 7636 section 4.5); absent when PKCE is switched off for the provider. */
  codeVerifier?: string
  /** The nonce that the id_token must have (OpenID Connect Core section 3.1.3.7); absent without the scope `openid`. */
  nonce?: string
}

/** One identity provider. Implement it for a provider that is neither OIDC nor built in. */
export interface ProviderClient {
  readonly providerName: string
  readonly clientId: string
  readonly authorizeUrl: string
  readonly tokenUrl: string
  readonly scopes: readonly string[]
  /** The URL to which the provider sends the browser back. Default: `{publicUrl}{prefix}/oauth/{key}/callback`. */
  readonly redirectUri?: string
  /** PKCE S256; false switches it off for a provider that refuses it. Default true. */
  readonly pkce?: boolean
  /** The issuer that the callback's `iss` must equal, if the callback has one (RFC 9207). Absent: `iss` is not checked. */
  readonly issuer?: string
  /** True: a callback without `iss` is refused, because this provider always sends it (RFC 9207 section 2.3). */
  readonly requiresIssuerParameter?: boolean
  /**
   * How the browser sends the callback: `form_post` is a POST with a form (OAuth 2.0 Form Post Response Mode), and needs `cookieSecure`.
   * Absent: in the query of a redirect.
   */
  readonly responseMode?: 'form_post'
  /**
   * Reads a name from the field `user` that came with a code by `form_post`. The field is not signed, so only the name is read. It is used
   * if the profile has no name.
   */
  nameOfForm?(user: string): string | null
  /**
   * True: this provider asks for a new sign-in whenever the request says `prompt=login`, although it does not send when the person signed
   * in. False or absent: only an `auth_time` shows a new sign-in (`authTimeOf`).
   */
  readonly reauthenticates?: boolean
  /**
   * Returns when the person signed in at the provider, by `auth_time` of the verified id_token, in seconds since 1970. Null: it does not
   * say.
   */
  authTimeOf?(tokens: OAuthTokens): number | null
  /** Further parameters of the authorization URL. */
  readonly authorizeParams?: Readonly<Record<string, string>>
  /** True: a login passes its `login_hint` to the provider. */
  readonly loginHint?: boolean
  /**
   * The URL where the browser ends its session at the provider (OpenID Connect RP-Initiated Logout 1.0). Null or absent: the provider has no such
   * endpoint.
   */
  readonly endSessionUrl?: string | null
  /**
   * Resolves when `authorizeUrl` and `tokenUrl` are known. Until then they may be empty. Called before each login and callback.
   *
   * @throws OAuthProviderUnavailableError when they cannot be discovered now
   */
  prepare?(): Promise<void>
  /**
   * Called by `createAuthRouter`: starts the discovery that `prepare` waits for. `key` is the registration key. Call `onFailure` for each
   * failure.
   */
  prepareInBackground?(key: string, onFailure: (error: unknown) => void): void
  /**
   * Pushes the authorization request to the provider (RFC 9126). Gets the authorization URL, and returns the URL for the browser.
   *
   * @throws OAuthProviderUnavailableError when the provider does not accept it
   */
  pushAuthorizationRequest?(authorizationUrl: string): Promise<string>
  /** Called by `createAuthRouter` with its `now`. Check the times of tokens by this clock. */
  useClock?(now: () => Date): void
  /** Exchanges the code for tokens. @throws OAuthError when the provider refuses or its response cannot be used */
  exchangeCode(input: CodeExchange): Promise<OAuthTokens>
  /** Reads the profile. @throws OAuthError when the provider refuses or its response cannot be used */
  fetchUser(tokens: OAuthTokens): Promise<OAuthUser>
  /**
   * Verifies that a token was issued to this application. Resolves with what else it found out, if anything. Called before the profile is
   * read. Absent: a token from an app is refused (501).
   *
   * @throws OAuthTokenAudienceMismatchError (another application's), OAuthTokenRejectedError (not valid), OAuthProviderUnavailableError
   * (try again), OAuthError
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: a method that only checks is one of these, which undefined would refuse
  verifyTokenAudience?(accessToken: string): Promise<TokenProof | void>
  /**
   * Verifies an app's id_token: it must have a valid signature, be from this provider, for this application, at most 10 minutes old, and
   * have this nonce. Resolves with tokens for `fetchUser`. `proof.claims` are its claims, `exp` among them. Absent: an id_token from an app
   * is refused (501).
   *
   * @param nonce as the app sent it; the token may have its SHA-256 in hex. Null: none, and a token that has one is refused
   * @throws OAuthTokenAudienceMismatchError, OAuthTokenRejectedError, OAuthProviderUnavailableError, OAuthError
   */
  verifyIdToken?(idToken: string, nonce: string | null): Promise<OAuthTokens>
}
