import type { JwtAlgorithm } from '../keys'

/** All settings of the router, complete. docs/configuration.md says more about each. */
export interface Settings {
  /**
   * The secret that every key is derived from: at least 32 random bytes, such as the output of `openssl rand -base64 48`. To replace it, pass
   * a list of 1 to 10: the first signs, all of them verify. Required. `AUTH_JWT_SECRET`.
   */
  readonly jwtSecret: string | readonly string[]
  /**
   * Key pairs that access tokens are signed with: up to 20. The first signs, all of them verify, and their public keys are published. Default
   * null: HS256 with a key of `jwtSecret`. `AUTH_JWT_KEYS`.
   */
  readonly jwtKeys: readonly JwtKey[] | null
  /** Lifetime of an access token in seconds: 1 to 86400. Default 900 (15 minutes). `AUTH_ACCESS_TOKEN_TTL_SECONDS`. */
  readonly accessTokenTtlSeconds: number
  /**
   * Lifetime of a refresh token in seconds: 1 to 31536000. Each refresh starts it again. Default 604800 (7 days).
   * `AUTH_REFRESH_TOKEN_TTL_SECONDS`.
   */
  readonly refreshTokenTtlSeconds: number
  /**
   * Maximum duration of a login in seconds, however often it is refreshed: 1 to 315360000. Default 2592000 (30 days).
   * `AUTH_REFRESH_FAMILY_TTL_SECONDS`.
   */
  readonly refreshFamilyTtlSeconds: number
  /**
   * For this many seconds, a refresh token that was already used returns the same new token again: 0 to 60, and below
   * `accessTokenTtlSeconds`. Default 0: using a token twice revokes its session. `AUTH_REFRESH_REUSE_GRACE_SECONDS`.
   */
  readonly refreshReuseGraceSeconds: number
  /**
   * How a login sends its tokens to the client. `bearer`: tokens in the JSON body. `cookie`: tokens in cookies. `both`: `/login` returns
   * tokens, `/cookie/login` sets cookies. `session`: no tokens, but a session in the database and its cookie. Default `bearer`.
   * `AUTH_TOKEN_DELIVERY`.
   */
  readonly tokenDelivery: 'bearer' | 'cookie' | 'both' | 'session'
  /** Whether cookies are sent over https only. False only to develop over plain http. Default true. `AUTH_COOKIE_SECURE`. */
  readonly cookieSecure: boolean
  /** The `SameSite` attribute of cookies. `none` needs `cookieSecure`. Default `lax`. `AUTH_COOKIE_SAMESITE`. */
  readonly cookieSamesite: 'lax' | 'strict' | 'none'
  /**
   * The `Domain` attribute of cookies: a host name without scheme, port or leading dot. Default null: cookies stay with the host
   * that set them. `AUTH_COOKIE_DOMAIN`.
   */
  readonly cookieDomain: string | null
  /** Name of the cookie that holds the access token. Default `access_token`. `AUTH_ACCESS_COOKIE_NAME`. */
  readonly accessCookieName: string
  /** Name of the cookie that holds the refresh token; never `__Host-…`. Default `refresh_token`. `AUTH_REFRESH_COOKIE_NAME`. */
  readonly refreshCookieName: string
  /**
   * Up to 100 other origins whose pages may use the routes with cookies, such as `https://app.example.com`. Default `[]`.
   * `AUTH_TRUSTED_ORIGINS`.
   */
  readonly trustedOrigins: readonly string[]
  /** Turns social login on. Default false. `AUTH_OAUTH_ENABLED`. */
  readonly oauthEnabled: boolean
  /**
   * The public address of your app, such as `https://app.example.com`: no path, no trailing slash. Social login, links in mails
   * and the cross-site check use it. Default empty. `AUTH_PUBLIC_URL`.
   */
  readonly publicUrl: string
  /** Whether a social login of an unknown person creates an account. Default: as `signupEnabled`. `AUTH_OAUTH_ALLOW_ACCOUNT_CREATION`. */
  readonly oauthAllowAccountCreation: boolean
  /**
   * Whether a social login is linked to the account with the same address, if the provider has verified the address. Default false.
   * `AUTH_OAUTH_LINK_BY_VERIFIED_EMAIL`.
   */
  readonly oauthLinkByVerifiedEmail: boolean
  /**
   * Only for a users table without `email_verified_at`: you verify every address in it in another way. Default false.
   * `AUTH_ASSUME_EMAILS_PROVEN`.
   */
  readonly assumeEmailsProven: boolean
  /** Name of the cookie that protects a social login until its callback; never `__Host-…`. Default `oauth_state`. `AUTH_OAUTH_STATE_COOKIE_NAME`. */
  readonly oauthStateCookieName: string
  /** How long a person may stay at the provider, in seconds: 30 to 3600. Default 600 (10 minutes). `AUTH_OAUTH_STATE_TTL_SECONDS`. */
  readonly oauthStateTtlSeconds: number
  /** Rejects a request to unlink the last provider of an account that has no password. Default false. `AUTH_OAUTH_KEEP_LAST_LOGIN_METHOD`. */
  readonly oauthKeepLastLoginMethod: boolean
  /**
   * The page that the callback redirects to after a login: an absolute URL, or a path that starts with one `/`. Not with
   * `tokenDelivery: 'bearer'`. Default null: the callback sends JSON. `AUTH_OAUTH_SUCCESS_REDIRECT`.
   */
  readonly oauthSuccessRedirect: string | null
  /**
   * The page that the callback redirects to after a failure, with `?error=CODE`: an absolute URL, or a path. Default null: the callback sends
   * JSON. `AUTH_OAUTH_ERROR_REDIRECT`.
   */
  readonly oauthErrorRedirect: string | null
  /**
   * The page that a provider redirects to after a logout there (`POST /logout` with `provider_logout`): an absolute URL, or a path of
   * `publicUrl`. Register it at the provider. Default null: the provider shows its own page. `AUTH_LOGOUT_REDIRECT`.
   */
  readonly logoutRedirect: string | null
  /**
   * The exact URIs of apps that keep their own tokens, which a social login may redirect to. They belong to native apps
   * (`com.example.app:/signed-in`) and to single-page apps on other sites (`https://spa.example.com/signed-in`). Not with
   * `tokenDelivery: 'cookie'`. Default `[]`. `AUTH_APP_REDIRECTS`: a JSON list.
   */
  readonly appRedirects: readonly string[]
  /**
   * Whether there are accounts with an email address and a password. False removes every route for sign-up, password and activation; then
   * neither a mailer nor link templates are needed. Default true. `AUTH_LOCAL_ACCOUNTS_ENABLED`.
   */
  readonly localAccountsEnabled: boolean
  /**
   * Mails a person about a login in a browser without a device cookie of the account. Needs a `tokenDelivery` with cookies or sessions.
   * Default false. `AUTH_NEW_DEVICE_NOTICE`.
   */
  readonly newDeviceNotice: boolean
  /**
   * Whether people log in by password. False removes every route that sets, changes or requires a password; an account only needs an email
   * address. People then log in by email (`emailLogin`), by a provider or by a passkey. Default true. `AUTH_PASSWORD_LOGIN`.
   */
  readonly passwordLogin: boolean
  /** Whether people may create accounts. Default true. `AUTH_SIGNUP_ENABLED`. */
  readonly signupEnabled: boolean
  /** Whether a new account can log in at once, without the mailed link. Its address counts as unverified. Default false. `AUTH_AUTO_ACTIVATE`. */
  readonly autoActivate: boolean
  /**
   * Adds activation and reset links to response bodies, for development. In production it needs `linksInProduction`. Default false.
   * `AUTH_RETURN_TOKEN_IN_RESPONSE`.
   */
  readonly returnTokenInResponse: boolean
  /** Allows links in response bodies in production, where any client could then take over any account. Default false. `AUTH_LINKS_IN_PRODUCTION`. */
  readonly linksInProduction: boolean
  /** Lifetime of an activation link in seconds: 1 to 2592000. Default 604800 (7 days). `AUTH_ACTIVATION_TTL_SECONDS`. */
  readonly activationTtlSeconds: number
  /** Lifetime of a password-reset link in seconds: 1 to 86400. Default 3600 (1 hour). `AUTH_PASSWORD_RESET_TTL_SECONDS`. */
  readonly passwordResetTtlSeconds: number
  /**
   * Lifetime of an email-verification link in seconds: 1 to 2592000. Default 86400 (1 day). `AUTH_EMAIL_VERIFICATION_TTL_SECONDS`.
   */
  readonly emailVerificationTtlSeconds: number
  /** Lifetime of an email-change link in seconds: 1 to 604800. Default 3600 (1 hour). `AUTH_EMAIL_CHANGE_TTL_SECONDS`. */
  readonly emailChangeTtlSeconds: number
  /** Your page for activation links: a URL that contains `{token}` once. Default null. `AUTH_ACTIVATION_URL_TEMPLATE`. */
  readonly activationUrlTemplate: string | null
  /** Your page for password-reset links: a URL that contains `{token}` once. Default null. `AUTH_PASSWORD_RESET_URL_TEMPLATE`. */
  readonly passwordResetUrlTemplate: string | null
  /** Your page for email-verification links: a URL that contains `{token}` once. Default null. `AUTH_EMAIL_VERIFICATION_URL_TEMPLATE`. */
  readonly emailVerificationUrlTemplate: string | null
  /** Your page for email-change links: a URL that contains `{token}` once. Default null. `AUTH_EMAIL_CHANGE_URL_TEMPLATE`. */
  readonly emailChangeUrlTemplate: string | null
  /**
   * How long the link in a notice can undo a change of the account, in seconds: 0 to 2592000. 0: notices have no such link. Default 604800 (7
   * days). `AUTH_UNDO_SECONDS`.
   */
  readonly undoSeconds: number
  /** Your page for undo links, with `{token}`. It posts the token to `/security/undo`. Default null: our own page. `AUTH_UNDO_URL_TEMPLATE`. */
  readonly undoUrlTemplate: string | null
  /** Whether a new link invalidates older links of the same kind. Default true. `AUTH_SINGLE_ACTIVE_TOKEN`. */
  readonly singleActiveToken: boolean
  /**
   * Login by email. `link`: a mailed link. `code`: a mailed code of eight digits. `both`: both in one mail. `off`: no login by email. Default
   * `off`. `AUTH_EMAIL_LOGIN`.
   */
  readonly emailLogin: 'off' | 'link' | 'code' | 'both'
  /** Lifetime of the link or code of a login by email in seconds: 60 to 3600. Default 600 (10 minutes). `AUTH_EMAIL_LOGIN_TTL_SECONDS`. */
  readonly emailLoginTtlSeconds: number
  /**
   * Your page for login links: a URL that contains `{token}` once. Default null: our own page, with `backendLinks` and a delivery with
   * cookies or sessions. `AUTH_EMAIL_LOGIN_URL_TEMPLATE`.
   */
  readonly emailLoginUrlTemplate: string | null
  /**
   * Whether an address without an account gets no mail after a request for a login by email. Default false: a mail says that there is no
   * account. `AUTH_EMAIL_LOGIN_SILENT`.
   */
  readonly emailLoginSilent: boolean
  /** Whether a login by email creates an account if the address has none. Needs `signupEnabled`. Default false. `AUTH_EMAIL_LOGIN_SIGNUP`. */
  readonly emailLoginSignup: boolean
  /** Minimum length of a password in characters: 8 to 64. Default 12. `AUTH_PASSWORD_MIN_LENGTH`. */
  readonly passwordMinLength: number
  /** Maximum length of a password in bytes of UTF-8: 64 to 4096. Default 1024. `AUTH_PASSWORD_MAX_BYTES`. */
  readonly passwordMaxBytes: number
  /**
   * Whether a password needs a lower-case letter, an upper-case letter, a digit and a special character. Default false.
   * `AUTH_PASSWORD_REQUIRE_COMPLEXITY`.
   */
  readonly passwordRequireComplexity: boolean
  /**
   * Whether a sign-up with a taken address gets 409. Default false: it gets the same response as any other sign-up, and the owner gets a
   * mail. `AUTH_REVEAL_TAKEN_EMAIL`.
   */
  readonly revealTakenEmail: boolean
  /**
   * `strict` (recommended): an activation keeps the password of the sign-up only if the same browser signed up, or the password is entered.
   * Both show that the owner signed up. `lenient`: the activation link alone is enough, unless the address had more than one sign-up. Default
   * `lenient`. `AUTH_ACTIVATION_BINDING`.
   */
  readonly activationBinding: 'lenient' | 'strict'
  /** Turns the second factor (TOTP) on. Default false. `AUTH_MFA_ENABLED`. */
  readonly mfaEnabled: boolean
  /**
   * The name that authenticator apps show: up to 64 characters, no colon. Required with `mfaEnabled`. Default null.
   * `AUTH_MFA_ISSUER`.
   */
  readonly mfaIssuer: string | null
  /** How many recovery codes a person gets: 2 to 50. Default 10. `AUTH_MFA_RECOVERY_CODES_COUNT`. */
  readonly mfaRecoveryCodesCount: number
  /**
   * How long the second step of a login may take, in seconds: 30 to 900. Default 300 (5 minutes). `AUTH_MFA_TOKEN_TTL_SECONDS`.
   */
  readonly mfaTokenTtlSeconds: number
  /** How many steps of 30 seconds a TOTP code may be early or late: 0 to 2. Default 1. `AUTH_MFA_VERIFY_WINDOW`. */
  readonly mfaVerifyWindow: number
  /**
   * Encrypts TOTP secrets in the database: 32 random bytes in base64. Several, separated by commas: the first encrypts, all of them decrypt.
   * Default null: not encrypted. `AUTH_MFA_SECRET_KEY`.
   */
  readonly mfaSecretKey: string | null
  /** Turns passkeys on; needs the package `@simplewebauthn/server`. Default false. `AUTH_PASSKEYS_ENABLED`. */
  readonly passkeysEnabled: boolean
  /**
   * The domain of passkeys: the host of `publicUrl`, or a domain above it. If you change it later, every passkey is lost. Default null: the
   * host of `publicUrl`. `AUTH_WEBAUTHN_RP_ID`.
   */
  readonly webauthnRpId: string | null
  /** The name that browsers show when a passkey is added: up to 64 characters, no colon. Default null: `mfaIssuer`. `AUTH_WEBAUTHN_RP_NAME`. */
  readonly webauthnRpName: string | null
  /**
   * Up to 100 other origins that use passkeys: native apps, such as `android:apk-key-hash:…`, and https origins below `webauthnRpId`. Do not
   * list those of `publicUrl` and `trustedOrigins`. Default `[]`. `AUTH_WEBAUTHN_ORIGINS`.
   */
  readonly webauthnOrigins: readonly string[]
  /**
   * How long a session is fresh after the person showed a credential, in seconds: 60 to 86400. Only a fresh session may change how the
   * account logs in; `POST /reauthenticate` makes it fresh again. Default 900 (15 minutes). `AUTH_FRESH_SESSION_SECONDS`.
   */
  readonly freshSessionSeconds: number
  /**
   * Whether access tokens contain `sid` and `auth_time`. With false they contain exactly the six claims of 0.1.0. Then routes that need the
   * session need the refresh cookie, or `refresh_token` in the body. Default true. `AUTH_ACCESS_TOKEN_SESSION_CLAIMS`.
   */
  readonly accessTokenSessionClaims: boolean
  /**
   * The issuer of access tokens, for verifiers of other vendors: an https URL (http on localhost) without query and fragment, such as
   * `https://app.example.com/auth`. With `accessTokenAudience` it turns on the JWT profile of RFC 9068. Default null.
   * `AUTH_ACCESS_TOKEN_ISSUER`.
   */
  readonly accessTokenIssuer: string | null
  /** The audience of access tokens: one name or a list of up to 20. Guards require one of their own. Default null. `AUTH_ACCESS_TOKEN_AUDIENCE`. */
  readonly accessTokenAudience: string | readonly string[] | null
  /** The claim `client_id` of access tokens. Default null: the first audience. `AUTH_ACCESS_TOKEN_CLIENT_ID`. */
  readonly accessTokenClientId: string | null
  /**
   * Whether access tokens from before `accessTokenIssuer` was set are accepted until they expire. Default false.
   * `AUTH_ACCEPT_LEGACY_ACCESS_TOKENS`.
   */
  readonly acceptLegacyAccessTokens: boolean
  /** Serves the built-in pages of mailed links. Default false. `AUTH_BACKEND_LINKS`. */
  readonly backendLinks: boolean
  /**
   * Serves the pages of the account area: sign-in, sign-up, and the pages for people who are signed in. Implies `backendLinks`. Not with
   * `tokenDelivery: 'bearer'`. Default false. `AUTH_PAGES_ENABLED`.
   */
  readonly pagesEnabled: boolean
  /**
   * The sign-in page: an absolute URL, or a path. The built-in pages link to it, and `guards.requireLogin()` redirects to it. Default null.
   * `AUTH_LOGIN_URL`.
   */
  readonly loginUrl: string | null
  /**
   * The language if neither `?lang` nor `Accept-Language` names a known one: `en-US`, `pt-BR` or a tag of option `languages`. Default
   * `en-US`. `AUTH_DEFAULT_LOCALE`.
   */
  readonly defaultLocale: 'en-US' | 'pt-BR' | (string & {})
  /**
   * Lifetime of a server-side session in seconds, counted from its last use: 1 to 31536000. Default 86400 (1 day).
   * `AUTH_SESSION_TTL_SECONDS`.
   */
  readonly sessionTtlSeconds: number
  /**
   * Maximum duration of a server-side session in seconds, however often it is used: 1 to 315360000, and at least `sessionTtlSeconds`. Default
   * 2592000 (30 days), or `sessionTtlSeconds` if that is more. `AUTH_SESSION_MAX_SECONDS`.
   */
  readonly sessionMaxSeconds: number
  /**
   * Maximum number of sessions of an account, of both kinds: 0 to 10000; 0: no limit. A login beyond it revokes the session that was unused
   * longest. Default 100. `AUTH_MAX_SESSIONS_PER_USER`.
   */
  readonly maxSessionsPerUser: number
  /** Name of the cookie of a server-side session. Default `auth_session`. `AUTH_SESSION_COOKIE_NAME`. */
  readonly sessionCookieName: string
  /** Serves `/openapi.json`. Default false in production, else true. `AUTH_OPENAPI_ENABLED`. */
  readonly openapiEnabled: boolean
  /**
   * How many verified access tokens a guard remembers, so that it need not verify them again: 0 to 100000, about 1 KiB each. Default 10000.
   * `AUTH_REMEMBERED_TOKENS`.
   */
  readonly rememberedTokens: number
  /**
   * The deadline of a database transaction of the library in seconds: 1 to 300. After it the transaction is rolled back and the response is
   * 503. Default 30. `AUTH_UNIT_TIMEOUT_SECONDS`.
   */
  readonly unitTimeoutSeconds: number
  /**
   * The time grid in milliseconds: 0 to 5000; 0: none. Responses to sign-ups, failed logins and failed second-factor steps are sent at its
   * next multiple, so that their time reveals nothing about an account. Default 500. `AUTH_TIMING_GRID_MILLISECONDS`.
   */
  readonly timingGridMilliseconds: number
}

/** A key pair for access tokens. Keys are PEM: PKCS#8 for the private one, SPKI for the public one, as openssl writes them. */
export interface JwtKey {
  /** The name of the key in tokens and in the key set: unique, 1 to 128 visible ASCII characters. */
  readonly kid: string
  /** The one algorithm of this key. ES256 needs an EC key on P-256; RS256 and PS256 need an RSA key of 2048 to 8192 bits. */
  readonly alg: JwtAlgorithm
  /** PKCS#8 in PEM. Required in the first key, which signs. */
  readonly privateKey?: string | undefined
  /** SPKI in PEM. Enough for a retired key. Together with a private key it must belong to that key. */
  readonly publicKey?: string | undefined
}

/**
 * Settings in code. Only `jwtSecret` is required; a setting that is missing or `undefined` has its default. Only `settingsFromEnv()` returns
 * numbers, booleans and lists as text; you may spread its result into these settings.
 */
export interface SettingsInput extends Given<Omit<Settings, 'jwtSecret'>> {
  /** See `Settings.jwtSecret`. Boot rejects `undefined`, which is the value of an unset variable. `AUTH_JWT_SECRET`. */
  readonly jwtSecret: Settings['jwtSecret'] | undefined
  /** The name of `publicUrl` before 0.2.0. Use only one of the two. Default empty. `OAUTH_REDIRECT_BASE_URL`. */
  readonly oauthRedirectBaseUrl?: string | undefined
  /**
   * Has no effect since 0.2.0: every route that changes how an account logs in requires a fresh session. Boot rejects `true`. Default
   * undefined. `AUTH_REAUTHENTICATE`.
   * @deprecated Remove it.
   */
  readonly reauthenticate?: boolean | undefined
}

type Given<Shape> = { readonly [Name in keyof Shape]?: Shape[Name] | undefined }

declare const origin: unique symbol

/** Text of an environment variable. Only `settingsFromEnv()` makes it; boot converts and checks it. */
export type EnvText = string & { readonly [origin]: 'environment' }

/** The result of `settingsFromEnv()`: the variables that are set, as text. `createAuthRouter` and `createGuards` accept it. */
export type EnvSettings = { readonly [Name in keyof SettingsInput]: EnvText | undefined }

/** Settings in code, settings from the environment, or both in one object. */
export type RouterSettings = { readonly [Name in keyof SettingsInput]: SettingsInput[Name] | EnvText }
