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

/** An external identity, normalized. */
export interface OAuthUser {
  provider: string
  /** The stable id inside that provider; together with the provider it is the key. The email never is. */
  subject: string
  email: string | null
  /** true: the provider verified it; false: it says not; null: it said nothing. */
  emailVerified: boolean | null
  name: string | null
  picture: string | null
  /** The provider's own payload. Never stored. */
  raw: Record<string, unknown>
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
  /** Default: `{oauthRedirectBaseUrl}{prefix}/oauth/{key}/callback`. */
  readonly redirectUri?: string
  /** PKCE S256; false switches it off for a provider that refuses it. Default true. */
  readonly pkce?: boolean
  /** What the callback's `iss` must be when it is there (RFC 9207). Absent: it is not looked at. */
  readonly issuer?: string
  /** True: a callback without `iss` is refused, because this provider always sends it (RFC 9207 section 2.3). */
  readonly requiresIssuerParameter?: boolean
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
}
