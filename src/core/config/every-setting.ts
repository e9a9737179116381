import type { JwtAlgorithm } from '../keys'
import { withOwnMessage } from '../logger'

/** All settings of the router, complete. docs/configuration.md says more about each setting. */
export interface Settings {
  /**
   * The secret from which the library derives every key. Use at least 32 random bytes, such as the output of `openssl rand -base64 48`. To
   * replace the secret, pass a list of 1 to 10 secrets. The first secret signs, and all secrets verify. Required. `AUTH_JWT_SECRET`.
   */
  readonly jwtSecret: string | readonly string[]
  /**
   * A list of 1 to 20 key pairs for access tokens. The first key signs, and all keys verify. The router publishes the public keys. Default
   * null: tokens are signed with HS256 and a key derived from `jwtSecret`. `AUTH_JWT_KEYS`.
   */
  readonly jwtKeys: readonly JwtKey[] | null
  /**
   * The name of this router's accounts: at most 40 letters, digits and `-`. Routers with the same secret or keys, but other accounts, need
   * different realms. A token, challenge or cookie of one realm is worthless in another. Default empty. `AUTH_REALM`.
   */
  readonly realm: string
  /** Lifetime of an access token in seconds: 1 to 86400. Default 900 (15 minutes). `AUTH_ACCESS_TOKEN_TTL_SECONDS`. */
  readonly accessTokenTtlSeconds: number
  /** Refresh token lifetime in seconds, new at each refresh: 1 to 31536000. Default 604800 (7 days). `AUTH_REFRESH_TOKEN_TTL_SECONDS`. */
  readonly refreshTokenTtlSeconds: number
  /** Maximum login duration in seconds, despite refreshes: 1 to 315360000. Default 2592000 (30 days). `AUTH_REFRESH_FAMILY_TTL_SECONDS`. */
  readonly refreshFamilyTtlSeconds: number
  /**
   * Grace period of a used refresh token in seconds: 0 to 60, and less than `accessTokenTtlSeconds`. If a client sends a used token within
   * the grace period, the router returns the same new token again. After the grace period, a second use revokes the session. Default 0: any
   * second use revokes the session. `AUTH_REFRESH_REUSE_GRACE_SECONDS`.
   */
  readonly refreshReuseGraceSeconds: number
  /**
   * How a login sends its tokens to the client.
   * - `bearer`: the JSON body contains the tokens.
   * - `cookie`: cookies contain the tokens.
   * - `both`: `/login` returns tokens in the body, and `/cookie/login` sets cookies.
   * - `session`: there are no tokens. The database stores the session, and a cookie identifies the session.
   *
   * Default `bearer`. `AUTH_TOKEN_DELIVERY`.
   */
  readonly tokenDelivery: 'bearer' | 'cookie' | 'both' | 'session'
  /** Browsers send the cookies over https only. Use false only for development over plain http. Default true. `AUTH_COOKIE_SECURE`. */
  readonly cookieSecure: boolean
  /** The `SameSite` attribute of cookies. `none` needs `cookieSecure`. Default `lax`. `AUTH_COOKIE_SAMESITE`. */
  readonly cookieSamesite: 'lax' | 'strict' | 'none'
  /** `Domain` of cookies: a host name without scheme, port or leading dot. Default null: the host that set them. `AUTH_COOKIE_DOMAIN`. */
  readonly cookieDomain: string | null
  /** Name of the cookie that contains the access token. Default `access_token`. `AUTH_ACCESS_COOKIE_NAME`. */
  readonly accessCookieName: string
  /** Name of the refresh token's cookie. Must not start with `__Host-`. Default `refresh_token`. `AUTH_REFRESH_COOKIE_NAME`. */
  readonly refreshCookieName: string
  /**
   * Up to 100 other origins, such as `https://app.example.com`. Pages of these origins may use the cookie routes. Apps in a web view and
   * browser extensions have origins too, such as `capacitor://localhost` and `chrome-extension://<id>`. Default `[]`.
   * `AUTH_TRUSTED_ORIGINS`.
   */
  readonly trustedOrigins: readonly string[]
  /** Turns social login on. Default false. `AUTH_OAUTH_ENABLED`. */
  readonly oauthEnabled: boolean
  /**
   * The public address of your app, such as `https://app.example.com`, without path and trailing slash. Social login, links in mails and
   * the cross-site check use the address. Default empty. `AUTH_PUBLIC_URL`.
   */
  readonly publicUrl: string
  /** Whether a first social login creates an account. Default: as `signupEnabled`. `AUTH_OAUTH_ALLOW_ACCOUNT_CREATION`. */
  readonly oauthAllowAccountCreation: boolean
  /**
   * Whether a first social login is linked to the existing account with the same email address. The provider must have verified the
   * address. Default false. `AUTH_OAUTH_LINK_BY_VERIFIED_EMAIL`.
   */
  readonly oauthLinkByVerifiedEmail: boolean
  /**
   * Allows `oauthLinkByVerifiedEmail` without a column `email_verified_at` in the users table. Use true only if your service verifies every
   * address in another way. Default false. `AUTH_ASSUME_EMAILS_PROVEN`.
   */
  readonly assumeEmailsProven: boolean
  /** Name of the cookie of a social login. Must not start with `__Host-`. Default `oauth_state`. `AUTH_OAUTH_STATE_COOKIE_NAME`. */
  readonly oauthStateCookieName: string
  /** How many seconds a person may spend at the provider: 30 to 3600. Default 600 (10 minutes). `AUTH_OAUTH_STATE_TTL_SECONDS`. */
  readonly oauthStateTtlSeconds: number
  /** Rejects removing the last way to log in: a linked provider or a passkey. Default false. `AUTH_OAUTH_KEEP_LAST_LOGIN_METHOD`. */
  readonly oauthKeepLastLoginMethod: boolean
  /**
   * The page to which the callback redirects after a social login. Use an absolute URL, or a path that starts with one `/`. The setting
   * cannot be combined with `tokenDelivery: 'bearer'`. Default null: the callback sends JSON. `AUTH_OAUTH_SUCCESS_REDIRECT`.
   */
  readonly oauthSuccessRedirect: string | null
  /**
   * The page to which the callback redirects after a failed social login, with `?error=CODE`. Use an absolute URL, or a path that starts
   * with one `/`. Default null: the callback sends JSON. `AUTH_OAUTH_ERROR_REDIRECT`.
   */
  readonly oauthErrorRedirect: string | null
  /**
   * The page to which a provider redirects after a logout at the provider (`POST /logout` with `provider_logout`). Use an absolute URL, or
   * a path below `publicUrl`. Register the URL at the provider. Default null: the provider shows its own page. `AUTH_LOGOUT_REDIRECT`.
   */
  readonly logoutRedirect: string | null
  /**
   * Up to 20 exact redirect URIs of apps that store their own tokens. A social login may redirect to these URIs. Examples are
   * `com.example.app:/signed-in` for a native app and `https://spa.example.com/signed-in` for a single-page app on another site. The
   * setting cannot be combined with `tokenDelivery: 'cookie'`. Default `[]`. `AUTH_APP_REDIRECTS` is a JSON list.
   */
  readonly appRedirects: readonly string[]
  /**
   * Whether accounts have an email address and a password. False removes every route for sign-up, passwords and activation. With false, the
   * router needs no mailer and no link templates. Default true. `AUTH_LOCAL_ACCOUNTS_ENABLED`.
   */
  readonly localAccountsEnabled: boolean
  /**
   * What happens at a login from a browser without a device cookie of the account, which shows that the browser logged in before.
   * `'notice'` mails the owner, and needs a `tokenDelivery` with cookies or sessions. `'code'` also asks for a mailed code after a right
   * password, if the address is verified and no second factor is active. Default `off`. `AUTH_UNKNOWN_DEVICE`.
   */
  readonly unknownDevice: 'off' | 'notice' | 'code'
  /**
   * Whether people log in with a password. False removes every route that sets, changes or requires a password. An account then needs only
   * an email address. With false, people log in by email (`emailLogin`), with a provider or with a passkey. Default true.
   * `AUTH_PASSWORD_LOGIN`.
   */
  readonly passwordLogin: boolean
  /** Whether people may create accounts. Default true. `AUTH_SIGNUP_ENABLED`. */
  readonly signupEnabled: boolean
  /**
   * Who may create an account.
   * - `open`: anybody.
   * - `invite`: only people with an invitation.
   * - `approve`: anybody, but an administrator approves each account before it becomes active.
   *
   * Default `open`. `AUTH_SIGNUP_MODE`.
   */
  readonly signupMode: 'open' | 'invite' | 'approve'
  /** Serves the routes of invitations. Default: as `signupMode`: true for `'invite'`, otherwise false. `AUTH_INVITATIONS_ENABLED`. */
  readonly invitationsEnabled: boolean
  /**
   * The URL of your page for invitation links. The URL contains `{token}` once. Default null: the built-in page.
   * `AUTH_INVITATION_URL_TEMPLATE`.
   */
  readonly invitationUrlTemplate: string | null
  /**
   * What a sign-up asks for besides the address: `password`, `passkey`, or both as a choice. With `passwordLogin: false`, `password` is a
   * sign-up by the address alone. `passkey` needs `passkeysEnabled`, a mailer, and a way to recover a lost passkey: `passwordLogin` or
   * `emailLogin`. Default `['password']`. `AUTH_SIGNUP_WITH`.
   */
  readonly signupWith: readonly ('password' | 'passkey')[]
  /** Lets a new account log in without the mailed link. The address counts as unverified. Default false. `AUTH_AUTO_ACTIVATE`. */
  readonly autoActivate: boolean
  /**
   * Adds activation links and reset links to response bodies, for development. In production, also set `linksInProduction`. Default false.
   * `AUTH_RETURN_TOKEN_IN_RESPONSE`.
   */
  readonly returnTokenInResponse: boolean
  /** Allows links in responses in production. Any client can then take over any account. Default false. `AUTH_LINKS_IN_PRODUCTION`. */
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
  /** The URL of your page for activation links. The URL contains `{token}` once. Default null. `AUTH_ACTIVATION_URL_TEMPLATE`. */
  readonly activationUrlTemplate: string | null
  /** The URL of your page for password-reset links. The URL contains `{token}` once. Default null. `AUTH_PASSWORD_RESET_URL_TEMPLATE`. */
  readonly passwordResetUrlTemplate: string | null
  /** The URL of your page for email-verification links, with `{token}` once. Default null. `AUTH_EMAIL_VERIFICATION_URL_TEMPLATE`. */
  readonly emailVerificationUrlTemplate: string | null
  /** The URL of your page for email-change links. The URL contains `{token}` once. Default null. `AUTH_EMAIL_CHANGE_URL_TEMPLATE`. */
  readonly emailChangeUrlTemplate: string | null
  /**
   * A notice is a mail about a change of the account. The link in a notice can undo the change for this many seconds: 0 to 2592000. With 0,
   * notices contain no link. Default 604800 (7 days). `AUTH_UNDO_SECONDS`.
   */
  readonly undoSeconds: number
  /**
   * The URL of your page for undo links. The URL contains `{token}` once. Your page posts the token to `/security/undo`. Default null: the
   * built-in page. `AUTH_UNDO_URL_TEMPLATE`.
   */
  readonly undoUrlTemplate: string | null
  /**
   * Whether people can delete and export their account.
   * - `soft`: the account closes at once, and is deleted after `accountDeletionDays`. Until then its person can come back.
   * - `immediate`: the account is deleted at once.
   *
   * Default `off`. `AUTH_ACCOUNT_DELETION`.
   */
  readonly accountDeletion: 'off' | 'soft' | 'immediate'
  /** With `accountDeletion: 'soft'`: the days until the deletion, 1 to 365. Default 30. `AUTH_ACCOUNT_DELETION_DAYS`. */
  readonly accountDeletionDays: number
  /**
   * The URL of your page for the way back. The URL contains `{token}` once. Your page posts the token to `/account/restore`. Default null:
   * the built-in page. `AUTH_ACCOUNT_RESTORE_URL_TEMPLATE`.
   */
  readonly accountRestoreUrlTemplate: string | null
  /** Whether a new link invalidates older links of the same kind. Default true. `AUTH_SINGLE_ACTIVE_TOKEN`. */
  readonly singleActiveToken: boolean
  /**
   * Whether people log in with a mailed link or code.
   * - `link`: the mail contains a link.
   * - `code`: the mail contains a code of eight digits.
   * - `both`: the mail contains a link and a code.
   * - `off`: there is no login by email.
   *
   * Default `off`. `AUTH_EMAIL_LOGIN`.
   */
  readonly emailLogin: 'off' | 'link' | 'code' | 'both'
  /** Lifetime of the mailed link or code of a login in seconds: 60 to 3600. Default 600 (10 minutes). `AUTH_EMAIL_LOGIN_TTL_SECONDS`. */
  readonly emailLoginTtlSeconds: number
  /**
   * The URL of your page for login links. The URL contains `{token}` once. Default null: the built-in page. The built-in page needs
   * `backendLinks` and a `tokenDelivery` with cookies or sessions. `AUTH_EMAIL_LOGIN_URL_TEMPLATE`.
   */
  readonly emailLoginUrlTemplate: string | null
  /** Sends no mail if an address without an account asks to log in. Default false: a mail says so. `AUTH_EMAIL_LOGIN_SILENT`. */
  readonly emailLoginSilent: boolean
  /** Creates an account at a login by email if there is none. True needs `signupEnabled`. Default false. `AUTH_EMAIL_LOGIN_SIGNUP`. */
  readonly emailLoginSignup: boolean
  /**
   * Whether mails with an activation, reset, verification or change of address link also contain a code of eight digits (docs/sign-up.md).
   * - `off`: only the link.
   * - `both`: the link and a code, for the browser that requested the mail.
   *
   * Default `off`. `AUTH_MAILED_CODES`.
   */
  readonly mailedCodes: 'off' | 'both'
  /** Minimum length of a password in characters: 8 to 64. Default 12. `AUTH_PASSWORD_MIN_LENGTH`. */
  readonly passwordMinLength: number
  /** Maximum length of a password in bytes of UTF-8: 64 to 4096. Default 1024. `AUTH_PASSWORD_MAX_BYTES`. */
  readonly passwordMaxBytes: number
  /** Requires a lower-case and an upper-case letter, a digit and a special character. Default false. `AUTH_PASSWORD_REQUIRE_COMPLEXITY`. */
  readonly passwordRequireComplexity: boolean
  /**
   * Whether a sign-up with an address of an existing account gets status 409. Default false: the response is the same as for a new address.
   * The owner of the account then gets a mail. `AUTH_REVEAL_TAKEN_EMAIL`.
   */
  readonly revealTakenEmail: boolean
  /**
   * Sets when an activation keeps the password of the sign-up.
   * - `strict` (recommended): the activation must come from the browser that signed up, or the person must enter the password. Both ways
   *   show that the owner of the address signed up.
   * - `lenient`: the link is enough. The rule of `strict` applies in two cases: the address had sign-ups with different passwords, or
   *   doorward mailed the link after a password reset request. The built-in page of the link always follows `strict`, except for an account
   *   without a password.
   *
   * Default `lenient`. `AUTH_ACTIVATION_BINDING`.
   */
  readonly activationBinding: 'lenient' | 'strict'
  /** Turns the second factor (TOTP) on. Default false. `AUTH_MFA_ENABLED`. */
  readonly mfaEnabled: boolean
  /** The name that authenticator apps show: up to 64 characters, no colon. `mfaEnabled` requires it. Default null. `AUTH_MFA_ISSUER`. */
  readonly mfaIssuer: string | null
  /** How many recovery codes a person gets: 2 to 50. Default 10. `AUTH_MFA_RECOVERY_CODES_COUNT`. */
  readonly mfaRecoveryCodesCount: number
  /** How many seconds the second step of a login may take: 30 to 900. Default 300 (5 minutes). `AUTH_MFA_TOKEN_TTL_SECONDS`. */
  readonly mfaTokenTtlSeconds: number
  /** How many steps of 30 seconds a TOTP code may be early or late: 0 to 2. Default 1. `AUTH_MFA_VERIFY_WINDOW`. */
  readonly mfaVerifyWindow: number
  /**
   * The key that encrypts TOTP secrets in the database: 32 random bytes in base64. You can pass several keys, separated by commas. The
   * first key encrypts, and all keys decrypt. Default null: the secrets are not encrypted. `AUTH_MFA_SECRET_KEY`.
   */
  readonly mfaSecretKey: string | null
  /**
   * For how many days a person can trust a browser: 0 to 90. In a trusted browser, a login by password needs no second factor. The setting
   * needs `mfaEnabled`, and a `tokenDelivery` with cookies or sessions. Default 0: no browser is trusted. `AUTH_TRUSTED_DEVICE_DAYS`.
   */
  readonly trustedDeviceDays: number
  /** Turns passkeys on. Passkeys need the package `@simplewebauthn/server`. Default false. `AUTH_PASSKEYS_ENABLED`. */
  readonly passkeysEnabled: boolean
  /**
   * The domain of passkeys: the host of `publicUrl`, or a parent domain of that host. If you change the domain later, no existing passkey
   * works. Default null: the host of `publicUrl`. `AUTH_WEBAUTHN_RP_ID`.
   */
  readonly webauthnRpId: string | null
  /** The name when a person adds a passkey: up to 64 characters, no colon. Default null: `mfaIssuer`. `AUTH_WEBAUTHN_RP_NAME`. */
  readonly webauthnRpName: string | null
  /**
   * Up to 100 other origins that use passkeys: native apps (`android:apk-key-hash:…`), and https origins. An origin that is not at or below
   * `webauthnRpId` is a related origin, and `auth.wellKnown` lists it. The origins of `publicUrl` and `trustedOrigins` are always allowed. Default `[]`. `AUTH_WEBAUTHN_ORIGINS`.
   */
  readonly webauthnOrigins: readonly string[]
  /**
   * How many seconds a session is fresh after the person entered a credential: 60 to 86400, or 0. Only a fresh session may change how the
   * account logs in. `POST /reauthenticate` makes a session fresh again. 0: every live session is fresh. Default 900 (15 minutes).
   * `AUTH_FRESH_SESSION_SECONDS`.
   */
  readonly freshSessionSeconds: number
  /**
   * How many seconds a second factor, passkey or identity is young after it was added to an existing account: 0 to 604800. A young
   * credential can log in, but it makes no session fresh and confirms no change. Default 86400 (24 hours). `AUTH_YOUNG_CREDENTIAL_SECONDS`.
   */
  readonly youngCredentialSeconds: number
  /**
   * Whether access tokens contain the claims `sid` and `auth_time`. With false, access tokens contain neither.
   * Routes that need the session then require the refresh cookie, or `refresh_token` in the body. Default true.
   * `AUTH_ACCESS_TOKEN_SESSION_CLAIMS`.
   */
  readonly accessTokenSessionClaims: boolean
  /**
   * The issuer of access tokens, for verifiers of other vendors. Use an https URL (http on localhost) without query and fragment, such as
   * `https://app.example.com/auth`. The setting needs `accessTokenAudience`. The two settings together turn on the JWT profile of RFC 9068.
   * Default null. `AUTH_ACCESS_TOKEN_ISSUER`.
   */
  readonly accessTokenIssuer: string | null
  /**
   * The audience of access tokens: one name, or a list of up to 20 names. A guard accepts a token if the token has one of the guard's own
   * audiences. Default null. `AUTH_ACCESS_TOKEN_AUDIENCE`.
   */
  readonly accessTokenAudience: string | readonly string[] | null
  /** The claim `client_id` of access tokens. Default null: the first audience. `AUTH_ACCESS_TOKEN_CLIENT_ID`. */
  readonly accessTokenClientId: string | null
  /** Accepts access tokens from before `accessTokenIssuer` was set, until expiry. Default false. `AUTH_ACCEPT_LEGACY_ACCESS_TOKENS`. */
  readonly acceptLegacyAccessTokens: boolean
  /** Serves the built-in pages for mailed links. Default false. `AUTH_BACKEND_LINKS`. */
  readonly backendLinks: boolean
  /**
   * Serves the pages of the account area: sign-in, sign-up, and the pages for people who are logged in. True also turns on `backendLinks`.
   * The setting cannot be combined with `tokenDelivery: 'bearer'`. Default false. `AUTH_PAGES_ENABLED`.
   */
  readonly pagesEnabled: boolean
  /** The sign-in page for built-in pages and `guards.requireLogin()`: an absolute URL, or a path. Default null. `AUTH_LOGIN_URL`. */
  readonly loginUrl: string | null
  /**
   * The language of pages, mails and errors. The setting applies if the request names no known language with `?lang` or `Accept-Language`.
   * Use `en-US`, `pt-BR` or a tag of option `languages`. Default `en-US`. `AUTH_DEFAULT_LOCALE`.
   */
  readonly defaultLocale: 'en-US' | 'pt-BR' | (string & {})
  /** Server-side session lifetime in seconds: 1 to 31536000. Each use restarts it. Default 86400 (1 day). `AUTH_SESSION_TTL_SECONDS`. */
  readonly sessionTtlSeconds: number
  /**
   * Maximum duration of a server-side session in seconds: 1 to 315360000, and at least `sessionTtlSeconds`. Use of the session does not
   * extend the maximum. Default 2592000 (30 days), or `sessionTtlSeconds` if that is more. `AUTH_SESSION_MAX_SECONDS`.
   */
  readonly sessionMaxSeconds: number
  /**
   * Maximum number of sessions of an account: 0 to 10000. With 0, there is no limit. Server-side sessions and sessions of refresh tokens
   * count. If a login exceeds the limit, the library revokes the session that was unused longest. Default 100.
   * `AUTH_MAX_SESSIONS_PER_USER`.
   */
  readonly maxSessionsPerUser: number
  /** Name of the cookie of server-side sessions. Default `auth_session`. `AUTH_SESSION_COOKIE_NAME`. */
  readonly sessionCookieName: string
  /** Serves `/openapi.json`. Default false in production, otherwise true. `AUTH_OPENAPI_ENABLED`. */
  readonly openapiEnabled: boolean
  /**
   * How many verified access tokens a guard remembers: 0 to 100000. The guard does not verify a remembered token again. A token needs about
   * 1 KiB of memory. Default 10000. `AUTH_REMEMBERED_TOKENS`.
   */
  readonly rememberedTokens: number
  /**
   * The time limit of a database transaction of the library in seconds: 1 to 300. After this time, the library rolls the transaction back
   * and sends status 503. A guard waits at most this time for the database. Default 30. `AUTH_UNIT_TIMEOUT_SECONDS`.
   */
  readonly unitTimeoutSeconds: number
  /**
   * How often the router and `createGuards` compare open live-session signals with the session table, in seconds: 1 to 300, or 0. With 0,
   * only a session that this router itself ends aborts its signals. Default 5. `AUTH_LIVE_SESSION_POLL_SECONDS`.
   */
  readonly liveSessionPollSeconds: number
  /**
   * How many mails the library sends at the same time: 1 to 100. The other mails wait. Use fewer than the connections that the mail server
   * accepts, divided by the number of processes. Default 5. `AUTH_MAIL_CONCURRENCY`.
   */
  readonly mailConcurrency: number
  /**
   * The interval of response times in milliseconds: 0 to 5000. The router delays some responses to the next multiple of the interval:
   * sign-ups, failed logins and failed second-factor steps. The response time then reveals nothing about an account. With 0, there is no
   * delay. Default 500. `AUTH_TIMING_GRID_MILLISECONDS`.
   */
  readonly timingGridMilliseconds: number
}

/** A key pair for access tokens, in PEM. The private key is PKCS#8, and the public key is SPKI. openssl writes these formats. */
export interface JwtKey {
  /** The name of the key in tokens and in the key set: 1 to 128 visible ASCII characters. Each key needs a different name. */
  readonly kid: string
  /** The only algorithm of this key. ES256 needs an EC key on P-256. RS256 and PS256 need an RSA key of 2048 to 8192 bits. */
  readonly alg: JwtAlgorithm
  /** The private key: PKCS#8 in PEM. Required in the first key, because the first key signs. */
  readonly privateKey?: string | undefined
  /** The public key: SPKI in PEM. A retired key needs only the public key. If the entry also has a private key, the two keys must match. */
  readonly publicKey?: string | undefined
}

/**
 * Settings in code. Only `jwtSecret` is required. If another setting is missing or `undefined`, the default applies. The result of
 * `settingsFromEnv()` contains numbers, booleans and lists as text. You may spread that result into these settings.
 */
export interface SettingsInput extends Given<Omit<Settings, 'jwtSecret'>> {
  /** See `Settings.jwtSecret`. At boot, the library rejects `undefined`, which is the value of an unset variable. `AUTH_JWT_SECRET`. */
  readonly jwtSecret: Settings['jwtSecret'] | undefined
  /** Another name of `publicUrl`. Use only one of the two names. Default empty. `OAUTH_REDIRECT_BASE_URL`. */
  readonly oauthRedirectBaseUrl?: string | undefined
}

type Given<Shape> = { readonly [Name in keyof Shape]?: Shape[Name] | undefined }

declare const origin: unique symbol

/** The text of an environment variable. Only `settingsFromEnv()` creates it. The library converts and checks it at boot. */
export type EnvText = string & { readonly [origin]: 'environment' }

/** The result of `settingsFromEnv()`: the set variables as text. `createAuthRouter` and `createGuards` accept the result. */
export type EnvSettings = { readonly [Name in keyof SettingsInput]: EnvText | undefined }

/** Settings in code, settings from the environment, or both in one object. */
export type RouterSettings = { readonly [Name in keyof SettingsInput]: SettingsInput[Name] | EnvText }

/** The cookie that tells scripts that somebody may be signed in. No setting changes its name, because the client reads it. */
export const hintCookieName = 'auth_hint'

export function hasPasswords({ localAccountsEnabled, passwordLogin }: Pick<Settings, 'localAccountsEnabled' | 'passwordLogin'>): boolean {
  return localAccountsEnabled && passwordLogin
}

/** The HTTP routes for passwords do not exist with `passwordLogin: false`, but the service does. @throws Error if it is false */
export function requirePasswords({ passwordLogin }: Pick<Settings, 'passwordLogin'>): void {
  if (!passwordLogin)
    throw withOwnMessage(
      new Error('Passwords are off: passwordLogin (AUTH_PASSWORD_LOGIN) is false, so no password is set, changed or asked for.'),
    )
}

/** Sets mailed links, the sign-in page and redirects for `pagesEnabled`. Keeps every URL that the host set. */
export function withPages(settings: Settings, prefix: string): Settings {
  if (!settings.pagesEnabled) return settings
  return Object.freeze({
    ...settings,
    backendLinks: true,
    loginUrl: settings.loginUrl ?? `${prefix}/login`,
    oauthSuccessRedirect: settings.oauthSuccessRedirect ?? `${prefix}/account`,
    oauthErrorRedirect: settings.oauthErrorRedirect ?? `${prefix}/login`,
  })
}
