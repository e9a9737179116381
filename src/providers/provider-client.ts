import type { OAuthUser } from '../store/auth-store'

export type { OAuthUser }

/** What a token endpoint answered (RFC 6749 section 5.1). */
export interface OAuthTokens {
  accessToken: string
  tokenType: string
  refreshToken: string | null
  /** OIDC only. Not to be believed before it is verified. */
  idToken: string | null
  /** Seconds. */
  expiresIn: number | null
  scope: string | null
  /** The whole answer. Never stored. */
  raw: Record<string, unknown>
  /** For a token in hand, what `verifyTokenAudience` resolved with; absent after a code exchange. */
  proof?: TokenProof
}

/** What was learnt of a token in hand, beside that it was issued to this application. */
export interface TokenProof {
  /** Whose token it is, in the spelling of `fetchUser`: a profile of another subject is refused (401). */
  subject?: string
  /** What the provider said, or the verified claims. `fetchUser` finds them in `tokens.proof`. */
  claims?: Record<string, unknown>
}

export interface CodeExchange {
  code: string
  /** The redirect URI of the authorization request, byte for byte (RFC 6749 section 4.1.3). */
  redirectUri: string
  /** RFC 7636 section 4.5; absent when the provider has PKCE switched off. */
  codeVerifier?: string
  /** What an id_token that comes back must carry (OpenID Connect Core section 3.1.3.7); absent without scope `openid`. */
  nonce?: string
}

/** One identity provider. Implement it for a provider that is neither OIDC nor built in. */
export interface ProviderClient {
  readonly providerName: string
  readonly clientId: string
  readonly authorizeUrl: string
  readonly tokenUrl: string
  readonly scopes: readonly string[]
  /** Default: `{publicUrl}{prefix}/oauth/{key}/callback`. */
  readonly redirectUri?: string
  /** PKCE S256; false switches it off for a provider that refuses it. Default true. */
  readonly pkce?: boolean
  /** What the callback's `iss` must be when it is there (RFC 9207). Absent: it is not looked at. */
  readonly issuer?: string
  /** True: a callback without `iss` is refused, because this provider always sends it (RFC 9207 section 2.3). */
  readonly requiresIssuerParameter?: boolean
  /**
   * How the browser brings the answer back: `form_post` is a POST with a form (OAuth 2.0 Form Post Response Mode), and needs `cookieSecure`.
   * Absent: in the query of a redirect.
   */
  readonly responseMode?: 'form_post'
  /**
   * Reads a name from the field `user` that came beside a code by `form_post`. Nobody signed it, so nothing else is taken from there. It
   * counts where the profile has no name.
   */
  nameOfForm?(user: string): string | null
  /**
   * True: this provider asks for a new sign-in whenever the request says `prompt=login`, although it does not tell when the person
   * signed in. False or absent: only an `auth_time` proves one (`authTimeOf`).
   */
  readonly reauthenticates?: boolean
  /** When the person signed in at the provider, by `auth_time` of the verified id_token, in seconds since 1970; null: it does not say. */
  authTimeOf?(tokens: OAuthTokens): number | null
  /** Further parameters of the address where the browser goes to log in. */
  readonly authorizeParams?: Readonly<Record<string, string>>
  /** True: the `login_hint` of a login is passed on. */
  readonly loginHint?: boolean
  /** Where the browser ends its session at the provider (OpenID Connect RP-Initiated Logout 1.0); null or absent: there is no such place. */
  readonly endSessionUrl?: string | null
  /**
   * Resolves when `authorizeUrl` and `tokenUrl` are known; until then they may be empty. Called before each login and callback.
   *
   * @throws OAuthProviderUnavailableError when they cannot be learnt now
   */
  prepare?(): Promise<void>
  /** Called by `createAuthRouter`: begin to learn what `prepare` waits for. `key` is the registration key; `onFailure` hears each failure. */
  prepareInBackground?(key: string, onFailure: (error: unknown) => void): void
  /**
   * Given the address where the browser would go, returns the one where it goes: a request that was pushed to the provider (RFC 9126).
   *
   * @throws OAuthProviderUnavailableError when the provider does not take it
   */
  pushAuthorizationRequest?(authorizationUrl: string): Promise<string>
  /** Called by `createAuthRouter` with its `now`: check the instants of tokens by this clock. */
  useClock?(now: () => Date): void
  /** @throws OAuthError when the provider refuses or its answer cannot be used */
  exchangeCode(input: CodeExchange): Promise<OAuthTokens>
  /** @throws OAuthError when the provider refuses or its answer cannot be used */
  fetchUser(tokens: OAuthTokens): Promise<OAuthUser>
  /**
   * Resolves when the token was issued to this application, with what else was learnt of it, if anything. Called before
   * the profile is fetched. Absent: a token in hand is refused (501).
   *
   * @throws OAuthTokenAudienceMismatchError (another application's), OAuthTokenRejectedError (not valid),
   *   OAuthProviderUnavailableError (try again), OAuthError
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: a method that only checks is one of these, which undefined would refuse
  verifyTokenAudience?(accessToken: string): Promise<TokenProof | void>
  /**
   * Resolves with tokens for `fetchUser` when an app's id_token has a good signature, is from this provider, for this application, of the last
   * 10 minutes, and has this nonce; `proof.claims` are its claims, `exp` among them. Absent: an id_token in hand is refused (501).
   *
   * @param nonce as the app gave it; the token may have its SHA-256 in hex. Null: none, and a token that has one is refused
   * @throws OAuthTokenAudienceMismatchError, OAuthTokenRejectedError, OAuthProviderUnavailableError, OAuthError
   */
  verifyIdToken?(idToken: string, nonce: string | null): Promise<OAuthTokens>
}
