import type { JwtAlgorithm } from '../keys'

/** Every setting, complete: what the router works with. docs/configuration.md says more about each. */
export interface Settings {
  /**
   * Every key is derived from it: at least 32 random bytes, such as the output of `openssl rand -base64 48`. While you change it,
   * a list of 1 to 10: the first makes, all verify. Required. `AUTH_JWT_SECRET`.
   */
  readonly jwtSecret: string | readonly string[]
  /**
   * Key pairs that access tokens are signed with: up to 20. The first signs, all verify, and their public halves are published.
   * Default null: HS256 under a key of `jwtSecret`. `AUTH_JWT_KEYS`.
   */
  readonly jwtKeys: readonly JwtKey[] | null
  /** Lifetime of an access token in seconds: 1 to 86400. Default 900 (15 minutes). `AUTH_ACCESS_TOKEN_TTL_SECONDS`. */
  readonly accessTokenTtlSeconds: number
  /**
   * Lifetime of a refresh token in seconds: 1 to 31536000. Each refresh starts it anew. Default 604800 (7 days).
   * `AUTH_REFRESH_TOKEN_TTL_SECONDS`.
   */
  readonly refreshTokenTtlSeconds: number
  /**
   * Longest time a login lasts in seconds, however often it is refreshed: 1 to 315360000. Default 2592000 (30 days).
   * `AUTH_REFRESH_FAMILY_TTL_SECONDS`.
   */
  readonly refreshFamilyTtlSeconds: number
  /**
   * For this many seconds, a refresh token that was already used returns the same new token again: 0 to 60, and below
   * `accessTokenTtlSeconds`. Default 0: using a token twice ends its session. `AUTH_REFRESH_REUSE_GRACE_SECONDS`.
   */
  readonly refreshReuseGraceSeconds: number
  /**
   * What a login gives to the client. `bearer`: tokens in the JSON body. `cookie`: tokens in cookies. `both`: `/login` returns tokens,
   * `/cookie/login` sets cookies. `session`: no tokens, but a session in the database and its cookie. Default `bearer`.
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
   * Up to 100 further origins whose pages may use the routes with cookies, such as `https://app.example.com`. Default `[]`.
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
  /**
   * Whether a social login of an unknown person creates an account. Default: as `signupEnabled`.
   * `AUTH_OAUTH_ALLOW_ACCOUNT_CREATION`.
   */
  readonly oauthAllowAccountCreation: boolean
  /**
   * Whether a social login joins the account that has the same address, where the provider verified the address. Default false.
   * `AUTH_OAUTH_LINK_BY_VERIFIED_EMAIL`.
   */
  readonly oauthLinkByVerifiedEmail: boolean
  /**
   * Only for a users table without `email_verified_at`: you verified every address in it some other way. Default false.
   * `AUTH_ASSUME_EMAILS_PROVEN`.
   */
  readonly assumeEmailsProven: boolean
  /**
   * Name of the cookie that protects a social login on its way; never `__Host-…`. Default `oauth_state`.
   * `AUTH_OAUTH_STATE_COOKIE_NAME`.
   */
  readonly oauthStateCookieName: string
  /**
   * How long a person may take at the provider, in seconds: 30 to 3600. Default 600 (10 minutes). `AUTH_OAUTH_STATE_TTL_SECONDS`.
   */
  readonly oauthStateTtlSeconds: number
  /**
   * Refuses to unlink the last provider of an account that has no password. Default false. `AUTH_OAUTH_KEEP_LAST_LOGIN_METHOD`.
   */
  readonly oauthKeepLastLoginMethod: boolean
  /**
   * Where the callback sends the browser after a login: an absolute URL, or a path that starts with one `/`. Not with
   * `tokenDelivery: 'bearer'`. Default null: the callback answers JSON. `AUTH_OAUTH_SUCCESS_REDIRECT`.
   */
  readonly oauthSuccessRedirect: string | null
  /**
   * Where the callback sends the browser after a failure, with `?error=CODE`: an absolute URL, or a path. Default null: the
   * callback answers JSON. `AUTH_OAUTH_ERROR_REDIRECT`.
   */
  readonly oauthErrorRedirect: string | null
  /**
   * Where a provider sends the browser after a logout there (`POST /logout` with `provider_logout`): an absolute URL, or a path of
   * `publicUrl`. Register it at the provider. Default null: the provider shows a page of its own. `AUTH_LOGOUT_REDIRECT`.
   */
  readonly logoutRedirect: string | null
  /**
   * Where apps that keep their own tokens may be sent back to after a login by a provider: exact URIs of native apps
   * (`com.example.app:/signed-in`) and of single-page apps on other sites (`https://spa.example.com/signed-in`). Not with
   * `tokenDelivery: 'cookie'`. Default `[]`. `AUTH_APP_REDIRECTS`: a JSON list.
   */
  readonly appRedirects: readonly string[]
  /**
   * Whether there are accounts with email and password. False takes away every route of signup, password and activation, and
   * neither a mailer nor link templates are needed. Default true. `AUTH_LOCAL_ACCOUNTS_ENABLED`.
   */
  readonly localAccountsEnabled: boolean
  /**
   * Tells a person by mail of a login in a browser that carries no device cookie of the account. Needs a `tokenDelivery` with cookies or
   * sessions. Default false. `AUTH_NEW_DEVICE_NOTICE`.
   */
  readonly newDeviceNotice: boolean
  /**
   * Whether people sign in by a password. False takes away every route that sets, changes or asks for one; an account is made by its email
   * address alone. People then sign in by email (`emailLogin`), by a provider or by a passkey. Default true. `AUTH_PASSWORD_LOGIN`.
   */
  readonly passwordLogin: boolean
  /** Whether people may create accounts. Default true. `AUTH_SIGNUP_ENABLED`. */
  readonly signupEnabled: boolean
  /**
   * Whether a new account can log in at once, without the mailed link; its address counts as unverified. Default false.
   * `AUTH_AUTO_ACTIVATE`.
   */
  readonly autoActivate: boolean
  /**
   * Puts activation and reset links into response bodies, for development. In production it needs `linksInProduction`. Default
   * false. `AUTH_RETURN_TOKEN_IN_RESPONSE`.
   */
  readonly returnTokenInResponse: boolean
  /**
   * Accepts links in response bodies in production, where anybody who asks can take over any account. Default false.
   * `AUTH_LINKS_IN_PRODUCTION`.
   */
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
  /** Your page that activation mails link to: a URL that holds `{token}` once. Default null. `AUTH_ACTIVATION_URL_TEMPLATE`. */
  readonly activationUrlTemplate: string | null
  /**
   * Your page that password-reset mails link to: a URL that holds `{token}` once. Default null.
   * `AUTH_PASSWORD_RESET_URL_TEMPLATE`.
   */
  readonly passwordResetUrlTemplate: string | null
  /**
   * Your page that email-verification mails link to: a URL that holds `{token}` once. Default null.
   * `AUTH_EMAIL_VERIFICATION_URL_TEMPLATE`.
   */
  readonly emailVerificationUrlTemplate: string | null
  /**
   * Your page that email-change mails link to: a URL that holds `{token}` once. Default null. `AUTH_EMAIL_CHANGE_URL_TEMPLATE`.
   */
  readonly emailChangeUrlTemplate: string | null
  /**
   * How long the link in a notice undoes a change to the account, in seconds: 0 to 2592000. 0: notices carry no such link. Default
   * 604800 (7 days). `AUTH_UNDO_SECONDS`.
   */
  readonly undoSeconds: number
  /**
   * Your page for undo links, with `{token}`; it posts the token to `/security/undo`. Default null: a page of ours.
   * `AUTH_UNDO_URL_TEMPLATE`.
   */
  readonly undoUrlTemplate: string | null
  /** Whether a new link ends the older links of the same kind. Default true. `AUTH_SINGLE_ACTIVE_TOKEN`. */
  readonly singleActiveToken: boolean
  /**
   * Login by email: `link`: a mailed link, `code`: a mailed code of eight digits, `both`: both in one mail, `off`: none. Default `off`.
   * `AUTH_EMAIL_LOGIN`.
   */
  readonly emailLogin: 'off' | 'link' | 'code' | 'both'
  /** Lifetime of such a link or code in seconds: 60 to 3600. Default 600 (10 minutes). `AUTH_EMAIL_LOGIN_TTL_SECONDS`. */
  readonly emailLoginTtlSeconds: number
  /**
   * Your page that the link leads to: a URL that holds `{token}` once. Default null: a page of ours, with `backendLinks` and a delivery
   * with cookies or sessions. `AUTH_EMAIL_LOGIN_URL_TEMPLATE`.
   */
  readonly emailLoginUrlTemplate: string | null
  /**
   * Whether an address without an account gets no mail when somebody asks for a login by email. Default false: it gets one that says
   * so. `AUTH_EMAIL_LOGIN_SILENT`.
   */
  readonly emailLoginSilent: boolean
  /**
   * Whether a login by email creates an account where the address has none. Needs `signupEnabled`. Default false.
   * `AUTH_EMAIL_LOGIN_SIGNUP`.
   */
  readonly emailLoginSignup: boolean
  /** Least length of a password in characters: 8 to 64. Default 12. `AUTH_PASSWORD_MIN_LENGTH`. */
  readonly passwordMinLength: number
  /** Greatest length of a password in bytes of UTF-8: 64 to 4096. Default 1024. `AUTH_PASSWORD_MAX_BYTES`. */
  readonly passwordMaxBytes: number
  /**
   * Whether a password needs a lower-case letter, an upper-case letter, a digit and a special character. Default false.
   * `AUTH_PASSWORD_REQUIRE_COMPLEXITY`.
   */
  readonly passwordRequireComplexity: boolean
  /**
   * Whether a signup with a taken address answers 409. Default false: it answers like any other signup, and the owner gets a mail.
   * `AUTH_REVEAL_TAKEN_EMAIL`.
   */
  readonly revealTakenEmail: boolean
  /**
   * `strict` (recommended): an activation keeps the password of the signup only where the browser that signed up, or the password,
   * says that the signup was the owner's. `lenient`: the activation link alone is enough, unless more than one signup was made for
   * the address. Default `lenient`. `AUTH_ACTIVATION_BINDING`.
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
   * Encrypts TOTP secrets in the database: 32 random bytes in base64. Several, separated by commas: the first encrypts, all
   * decrypt. Default null: not encrypted. `AUTH_MFA_SECRET_KEY`.
   */
  readonly mfaSecretKey: string | null
  /** Turns passkeys on; needs the package `@simplewebauthn/server`. Default false. `AUTH_PASSKEYS_ENABLED`. */
  readonly passkeysEnabled: boolean
  /**
   * The domain that passkeys belong to: the host of `publicUrl`, or a domain above it. It cannot be changed later without losing every
   * passkey. Default null: the host of `publicUrl`. `AUTH_WEBAUTHN_RP_ID`.
   */
  readonly webauthnRpId: string | null
  /** The name that browsers show when a passkey is made: up to 64 characters, no colon. Default null: `mfaIssuer`. `AUTH_WEBAUTHN_RP_NAME`. */
  readonly webauthnRpName: string | null
  /**
   * Further origins that passkeys are used from: up to 100 of native apps, such as `android:apk-key-hash:…`, and https origins below
   * `webauthnRpId`. Those of `publicUrl` and `trustedOrigins` need not be listed. Default `[]`. `AUTH_WEBAUTHN_ORIGINS`.
   */
  readonly webauthnOrigins: readonly string[]
  /**
   * For how many seconds after a person showed a credential the session may change how the account is entered: 60 to 86400. After that
   * the person confirms it at `POST /reauthenticate` first. Default 900 (15 minutes). `AUTH_FRESH_SESSION_SECONDS`.
   */
  readonly freshSessionSeconds: number
  /**
   * Whether access tokens carry `sid` and `auth_time`. False gives exactly the six claims of 0.1.0; routes that need the session then
   * need the refresh cookie, or `refresh_token` in the body. Default true. `AUTH_ACCESS_TOKEN_SESSION_CLAIMS`.
   */
  readonly accessTokenSessionClaims: boolean
  /**
   * Who issues access tokens, for verifiers that know the standards: an https URL (http on localhost) without query and fragment, such as
   * `https://app.example.com/auth`. With `accessTokenAudience` it turns on the JWT profile of RFC 9068. Default null.
   * `AUTH_ACCESS_TOKEN_ISSUER`.
   */
  readonly accessTokenIssuer: string | null
  /** Whom access tokens are for: one name or a list of up to 20; guards ask for one of theirs. Default null. `AUTH_ACCESS_TOKEN_AUDIENCE`. */
  readonly accessTokenAudience: string | readonly string[] | null
  /** The claim `client_id` of access tokens. Default null: the first audience. `AUTH_ACCESS_TOKEN_CLIENT_ID`. */
  readonly accessTokenClientId: string | null
  /**
   * Whether access tokens from before `accessTokenIssuer` was set are accepted until they expire. Default false.
   * `AUTH_ACCEPT_LEGACY_ACCESS_TOKENS`.
   */
  readonly acceptLegacyAccessTokens: boolean
  /** Serves the pages that mailed links lead to. Default false. `AUTH_BACKEND_LINKS`. */
  readonly backendLinks: boolean
  /**
   * Serves the pages of the account area: sign-in, sign-up and what is behind them. Implies `backendLinks`. Not with `tokenDelivery: 'bearer'`.
   * Default false. `AUTH_PAGES_ENABLED`.
   */
  readonly pagesEnabled: boolean
  /**
   * Where people sign in: an absolute URL, or a path. Those pages lead there, and `guards.requireLogin()` sends people there. Default null.
   * `AUTH_LOGIN_URL`.
   */
  readonly loginUrl: string | null
  /**
   * The language where neither `?lang` nor `Accept-Language` decides: `en-US`, `pt-BR` or a tag of option `languages`. Default `en-US`.
   * `AUTH_DEFAULT_LOCALE`.
   */
  readonly defaultLocale: 'en-US' | 'pt-BR' | (string & {})
  /**
   * Lifetime of a server-side session in seconds, counted from its last use: 1 to 31536000. Default 86400 (1 day).
   * `AUTH_SESSION_TTL_SECONDS`.
   */
  readonly sessionTtlSeconds: number
  /**
   * Longest time a server-side session lasts in seconds, however often it is used: 1 to 315360000, and at least
   * `sessionTtlSeconds`. Default 2592000 (30 days), or `sessionTtlSeconds` where that is more. `AUTH_SESSION_MAX_SECONDS`.
   */
  readonly sessionMaxSeconds: number
  /**
   * How many sessions an account may have at once, of both kinds: 0 to 10000, 0: no limit. A login beyond it ends the one that was
   * unused longest. Default 100. `AUTH_MAX_SESSIONS_PER_USER`.
   */
  readonly maxSessionsPerUser: number
  /** Name of the cookie of a server-side session. Default `auth_session`. `AUTH_SESSION_COOKIE_NAME`. */
  readonly sessionCookieName: string
  /** Serves `/openapi.json`. Default false in production, else true. `AUTH_OPENAPI_ENABLED`. */
  readonly openapiEnabled: boolean
  /**
   * How many verified access tokens a guard remembers, to spare their next verification: 0 to 100000, some 1 KiB each. Default
   * 10000. `AUTH_REMEMBERED_TOKENS`.
   */
  readonly rememberedTokens: number
  /**
   * The deadline of a database transaction of the library in seconds: 1 to 300. Past it everything is rolled back and the answer
   * is 503. Default 30. `AUTH_UNIT_TIMEOUT_SECONDS`.
   */
  readonly unitTimeoutSeconds: number
  /**
   * Sign-ups, failed logins and failed second steps are answered at the next multiple of it in milliseconds, so that their time says
   * nothing about an account: 0 to 5000; 0: at once. Default 500. `AUTH_TIMING_GRID_MILLISECONDS`.
   */
  readonly timingGridMilliseconds: number
}

/** A key pair for access tokens. Keys are PEM: PKCS#8 for the private one, SPKI for the public one, as openssl writes them. */
export interface JwtKey {
  /** Names the key in tokens and in the key set: unique, 1 to 128 visible ASCII characters. */
  readonly kid: string
  /** The one algorithm of this key. ES256 needs an EC key on P-256; RS256 and PS256 need an RSA key of 2048 to 8192 bits. */
  readonly alg: JwtAlgorithm
  /** PKCS#8 in PEM. Needed in the first key, which signs. */
  readonly privateKey?: string | undefined
  /** SPKI in PEM. Enough for a retired key; beside a private key it must be its own. */
  readonly publicKey?: string | undefined
}

/**
 * Settings in code. Only `jwtSecret` is required; a setting that is left out, or `undefined`, has its default. Text for numbers,
 * booleans and lists comes from `settingsFromEnv()`, whose result may be spread under these.
 */
export interface SettingsInput extends Given<Omit<Settings, 'jwtSecret'>> {
  /** See `Settings.jwtSecret`. Boot refuses `undefined`, for which a variable that is not set stands. `AUTH_JWT_SECRET`. */
  readonly jwtSecret: Settings['jwtSecret'] | undefined
  /** The name that `publicUrl` had before 0.2.0. Give one of the two. Default empty. `OAUTH_REDIRECT_BASE_URL`. */
  readonly oauthRedirectBaseUrl?: string | undefined
  /**
   * Does nothing since 0.2.0: every route that changes how an account is entered asks for a fresh session. Boot refuses `true`. Default
   * undefined. `AUTH_REAUTHENTICATE`.
   * @deprecated Remove it.
   */
  readonly reauthenticate?: boolean | undefined
}

type Given<Shape> = { readonly [Name in keyof Shape]?: Shape[Name] | undefined }

declare const origin: unique symbol

/** Text of an environment variable, which boot converts and checks: only `settingsFromEnv()` makes it. */
export type EnvText = string & { readonly [origin]: 'environment' }

/** What `settingsFromEnv()` returns: the variables that are set, as text. `createAuthRouter` and `createGuards` take it. */
export type EnvSettings = { readonly [Name in keyof SettingsInput]: EnvText | undefined }

/** Settings in code, from the environment, or the latter with the former spread over them. */
export type RouterSettings = { readonly [Name in keyof SettingsInput]: SettingsInput[Name] | EnvText }
