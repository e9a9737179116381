export type { ProfileUpdate } from './account/update-profile'
export type { AdminUser } from './admin/admin-user'
export type { UserList, UserListQuery } from './admin/list-users'
export type { ActingAdmin } from './admin/lock-target'
export type { MfaReset } from './admin/reset-mfa'
export type { UserUpdate } from './admin/update-user'
export type { AuthMethod } from './amr'
export type {
  BoundEmailLoginRequest,
  BoundLogin,
  BoundService,
  BoundSession,
  BoundSignup,
  FactorProof,
  FinalProof,
  PasskeyProof,
  RequestedLink,
} from './bound-service/bound-service'
export type { AccessTokenClaimsHook } from './claims/ask-for-claims'
export type { ClaimsOf, HostClaims, Json } from './claims/host-claims'
export { settingsFromEnv } from './config/env'
export type { Environment } from './config/environment'
export type { EnvSettings, EnvText, JwtKey, RouterSettings, Settings, SettingsInput } from './config/every-setting'
export type { GuardSettingsInput } from './config/guard-settings'
export { type AuthRouter, createAuthRouter } from './create-auth-router'
export { createGuards, type GuardsOptions } from './create-guards'
export type { DoctorFinding, DoctorOptions, DoctorReport, FindingLevel } from './doctor/check'
export * as errors from './errors'
export { ConfigurationError, NotImplementedError } from './errors'
export type { AuthEventName, AuthEventPayloads, AuthEvents } from './events'
export { type CsrfGuardOptions, csrfGuard } from './guards/csrf/csrf-guard'
export { type CsrfTokenOptions, csrfToken } from './guards/csrf/csrf-token'
export type { SessionReader } from './guards/csrf/token-signer'
export { findAuth, getAuth, getSession, getUser } from './guards/current-auth'
export type { Guards } from './guards/guards'
export { type IdempotencyOptions, idempotency } from './guards/idempotency/idempotency'
export type { ResponseCache } from './guards/idempotency/response-cache'
export { type InternalTokenOptions, requireInternalToken } from './guards/internal-token'
export { type RateLimitOptions, rateLimit } from './guards/rate-limit'
export { errorHandler } from './http/error-handler'
export type { GuardedAction, GuardRequest } from './http/guard-request'
export type { SignupSchema, StandardResult, StandardSchema } from './http/host-schema'
export { Html, html } from './http/html'
export type { Locale } from './http/locale'
export {
  type CallPurpose,
  createHttpClient,
  type HttpClient,
  type HttpClientOptions,
  type HttpRequest,
  type HttpResponse,
} from './http-client'
export type { Logger } from './logger'
export { type SmtpMailerOptions, smtpMailer } from './mail/smtp-mailer'
export type { LinkToken } from './mailbox/email-link'
export { ACTIVATION_WITHHELD } from './mailbox/refuses-email-link'
export type { AuthMail, Mailer, MailRefusal, MailTemplates, MailText, MailTopic, TemplateMail } from './mailer'
export type { OAuthCodeExchange } from './oauth-code/exchange-code'
export { type AuditLog, type AuditLogOptions, auditLog } from './observers/audit-log'
export { type EventMetrics, type MetricsRegistry, metrics } from './observers/metrics'
export type { AuthRouterOptions, ProviderTokensHook, SignupInput, SignupOptions, SignupUnit, TakeOverHook } from './options'
export type {
  AreaPageInput,
  AreaPageName,
  LayoutInput,
  LayoutTemplate,
  LinkPageName,
  PageInput,
  PageName,
  PageTemplates,
} from './page-templates'
export type { PasskeyOptions } from './passkeys/options'
export type { PublicPasskey } from './passkeys/public-passkey'
export { aspNetIdentityReader } from './passwords/asp-net-reader'
export { type BcryptOptions, bcryptHasher } from './passwords/bcrypt-hasher'
export { bcryptReader } from './passwords/bcrypt-reader'
export { type BreachedPasswordsOptions, breachedPasswords } from './passwords/breached-passwords'
export { djangoPbkdf2Reader } from './passwords/django-reader'
export { type FirebaseScryptParameters, firebaseScryptReader } from './passwords/firebase-reader'
export { type Argon2idHasher, type Argon2idOptions, argon2idHasher } from './passwords/password-hasher'
export type { PasswordReader } from './passwords/password-reader'
export type { HashOptions, PasswordHasher, PasswordPolicy, UnreadableHash } from './passwords/password-types'
export { type PepperOptions, pepperedReader } from './passwords/peppered-reader'
export { type RehashingHasherOptions, rehashingHasher } from './passwords/rehashing-hasher'
export { AppleClient, type AppleClientOptions } from './providers/apple'
export type { ClientAuthentication, ClientCredentials, ClientKey } from './providers/client-authentication'
export type { KeySetClientOptions, OAuthClientOptions } from './providers/client-options'
export { DiscordClient } from './providers/discord'
export { FacebookClient, type FacebookClientOptions } from './providers/facebook'
export { providersFromEnv } from './providers/from-env'
export { GitHubClient, type GitHubClientOptions } from './providers/github'
export { GoogleClient, type GoogleClientOptions } from './providers/google'
export { MicrosoftClient, type MicrosoftClientOptions } from './providers/microsoft'
export { OidcClient, type OidcClientOptions } from './providers/oidc-client'
export {
  type MappedProfile,
  type PassportBase,
  type PassportProfile,
  type PassportProvider,
  type PassportProviderOptions,
  type PassportStateStore,
  type PassportStrategy,
  type PassportVerify,
  type Provider,
  passportProvider,
} from './providers/passport-provider'
export { GitLabClient, type GitLabClientOptions, LinkedInClient, SlackClient, TwitchClient } from './providers/presets'
export type { CodeExchange, OAuthTokens, ProviderClient, TokenProof } from './providers/provider-client'
export { createTokenVerifier, type TokenVerifier, type TokenVerifierOptions } from './providers/token-verifier'
export { type CheckTablesOptions, checkTables } from './readiness/check-tables'
export type { Reauthenticated, ServiceReauthentication } from './reauthentication/reauthenticate'
export { type Sealer, sealer } from './sealer'
export type { AuthService, FoundSession, ProofOfPresence, RequestedEmailLogin, ServiceLogout } from './service'
export type { AccessTokenClaims } from './session/access-token'
export type { PublicSession } from './session/find-session'
export type { LoginResult } from './session/finish-login'
export type { KeptTokens } from './session/keep-session'
export type { LoginResultOf, OpenedServerSession, SessionLoginResult } from './session/open-session'
export type { SessionOrigin } from './session/start-session'
export type { IdTokenInHand } from './social/id-token-in-hand'
export type { AccessTokenInHand, TokenInHand } from './social/token-in-hand'
export * from './store/auth-store'
export type { HostTypes, WithFields } from './store/host-types'
export type { HostTables } from './store/knex/default-tables'
export type { HostFieldMap, HostFieldOptions } from './store/knex/host-fields'
export {
  createKnexStore,
  type HostTransaction,
  type KnexStore,
  type KnexStoreOptions,
  type PartialKnexStore,
} from './store/knex/knex-store'
export type { RoleColumnOptions } from './store/knex/role-column'
export { createAuthTables, migrationSource, migrationSourceFor } from './store/knex/schema'
export type { ColumnMap, TableOptions } from './store/knex/table-options'
export type { InsertedUser, OwnUserFields, UserColumnMap, UsersTableOptions } from './store/knex/users-table'
export type { PublicUser } from './store/public-user'
export { type PurgeOptions, purgeExpired } from './store/purge-expired'
export { type Languages, type TextKey, texts } from './texts/texts'
export type { PageSources, ThemeOptions } from './theme/theme'
export type { MailBudgetsInput, SubjectBudgetsInput } from './throttle/budget'
export type { Budget, CounterStore } from './throttle/counter-store'
export { type KnexCountersOptions, knexCounters } from './throttle/knex-counters'
export { memoryCounters } from './throttle/memory-counters'
export { type IoredisClient, type NodeRedisClient, type RedisCountersOptions, redisCounters } from './throttle/redis-counters'
export type { CredentialDescriptor, PasskeyCreationOptions, PasskeyRequestOptions } from './webauthn/ceremonies'
