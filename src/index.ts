export type { AccountExport } from './accounts/deletion/export-account'
export type { LinkToken } from './accounts/email-links/email-link'
export { ACTIVATION_WITHHELD } from './accounts/email-links/email-link'
export type { ProfileUpdate } from './accounts/update-profile'
export type { ActingAdmin, AdminUser, MfaReset, UserUpdate } from './admin/change-user'
export type { UserList, UserListQuery } from './admin/list-users'
export { proofOfWork } from './captcha/proof-of-work'
export { type TurnstileOptions, turnstile } from './captcha/turnstile'
export type { AuthMethod } from './core/amr'
export type { Environment } from './core/config/environment'
export { settingsFromEnv } from './core/config/environment'
export type { EnvSettings, EnvText, JwtKey, RouterSettings, Settings, SettingsInput } from './core/config/every-setting'
export type { GuardSettingsInput } from './core/config/guard-settings'
export { type Sealer, sealer } from './core/encryption'
export * as errors from './core/errors'
export { ConfigurationError, NotImplementedError } from './core/errors'
export type { AuthEventName, AuthEventPayloads, AuthEvents } from './core/events'
export {
  type CallPurpose,
  createHttpClient,
  type HttpClient,
  type HttpClientOptions,
  type HttpRequest,
  type HttpResponse,
} from './core/http-client'
export type { Logger } from './core/logger'
export type { AuthMail, Mailer, MailRefusal, MailTemplates, MailText, MailTopic, TemplateMail } from './core/mailer'
export type {
  AreaPageInput,
  AreaPageName,
  LayoutInput,
  LayoutTemplate,
  LinkPageName,
  PageInput,
  PageName,
  PageTemplates,
  Templates,
} from './core/templates'
export { type Languages, type TextKey, texts } from './core/texts/phrase-book'
export type { PageSources, ThemeOptions } from './core/theme/theme'
export { type CsrfGuardOptions, csrfGuard } from './guards/csrf/csrf-guard'
export type { SessionReader } from './guards/csrf/csrf-token'
export { type CsrfTokenOptions, csrfToken } from './guards/csrf/csrf-token'
export type { Guards } from './guards/guards'
export { type IdempotencyOptions, idempotency } from './guards/idempotency/idempotency'
export type { ResponseCache } from './guards/idempotency/response-cache'
export { type InternalTokenOptions, requireInternalToken } from './guards/internal-token'
export type { RequestHeaders, RequestWithHeaders } from './guards/live-session/request-headers'
export type { VerifiedCredential } from './guards/live-session/verify'
export { type RateLimitOptions, rateLimit } from './guards/rate-limit'
export type { Captcha, CaptchaSources, CaptchaWhen } from './http/captcha'
export { errorHandler } from './http/error-envelope'
export type { GuardedAction, GuardRequest } from './http/guard-request'
export type { SignupSchema, StandardResult, StandardSchema } from './http/host-schema'
export { Html, html } from './http/html/document'
export type { Locale } from './http/locale'
export type { PasswordExpiry } from './login-tasks/expire-password'
export {
  type HostTaskOptions,
  type LoginTask,
  newPasswordTask,
  secondFactorTask,
  type TaskCondition,
  type TaskPage,
  task,
} from './login-tasks/login-task'
export type { TaskStep } from './login-tasks/steps'
export { type SmtpMailerOptions, smtpMailer } from './mail/smtp-mailer'
export { type AuditLog, type AuditLogOptions, type AuditQuery, type AuditRow, auditLog } from './observers/audit-log'
export { type EventMetrics, type MetricsRegistry, metrics } from './observers/metrics'
export type {
  AuthRouterOptions,
  DeletionHook,
  ExportHook,
  InvitationAcceptedHook,
  ProviderTokensHook,
  SignupInput,
  SignupOptions,
  SignupUnit,
  TakeOverHook,
} from './options'
export type { OutboxHandler } from './outbox/deliver'
export type { DeliverOptions, Outbox } from './outbox/outbox'
export type { OutboxEvent, OutboxEventName } from './outbox/outbox-events'
export { type StandardWebhookOptions, standardWebhook } from './outbox/standard-webhook'
export type { PasskeyOptions } from './passkeys/passkey-challenge'
export type { PublicPasskey } from './passkeys/register'
export type { CredentialDescriptor, PasskeyCreationOptions, PasskeyRequestOptions } from './passkeys/webauthn/ceremonies'
export { aspNetIdentityReader } from './passwords/asp-net-reader'
export { type BcryptOptions, bcryptHasher, bcryptReader } from './passwords/bcrypt-hasher'
export { type BreachedPasswordsOptions, breachedPasswords } from './passwords/check-password'
export { djangoPbkdf2Reader } from './passwords/django-reader'
export { type FirebaseScryptParameters, firebaseScryptReader } from './passwords/firebase-reader'
export { type Argon2idHasher, type Argon2idOptions, argon2idHasher } from './passwords/password-hasher'
export type { PasswordReader } from './passwords/password-reader'
export { type PepperOptions, pepperedReader } from './passwords/password-reader'
export type { HashOptions, PasswordHasher, PasswordPolicy, UnreadableHash } from './passwords/password-types'
export { type RehashingHasherOptions, rehashingHasher } from './passwords/rehashing-hasher'
export { AppleClient, type AppleClientOptions } from './providers/apple'
export type { ClientAuthentication, ClientCredentials, ClientKey } from './providers/client-authentication'
export type { KeySetClientOptions, OAuthClientOptions } from './providers/client-options'
export { DiscordClient } from './providers/discord'
export { FacebookClient, type FacebookClientOptions } from './providers/facebook'
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
export { GitLabClient, type GitLabClientOptions, LinkedInClient, providersFromEnv, SlackClient, TwitchClient } from './providers/presets'
export type { CodeExchange, OAuthTokens, ProviderClient, TokenProof } from './providers/provider-client'
export { createTokenVerifier, type TokenVerifier, type TokenVerifierOptions } from './providers/token-verifier'
export { type KnexCountersOptions, knexCounters } from './rate-limits/knex-counters'
export { memoryCounters } from './rate-limits/memory-counters'
export type { Budget, CounterStore, MailBudgetsInput, SubjectBudgetsInput } from './rate-limits/rate-limit'
export { type IoredisClient, type NodeRedisClient, type RedisCountersOptions, redisCounters } from './rate-limits/redis-counters'
export { type AuthRouter, createAuthRouter } from './router/create-auth-router'
export { createGuards, type GuardsOptions } from './router/create-guards'
export type { DoctorFinding, DoctorOptions, DoctorReport, FindingLevel } from './router/findings/doctor/check'
export { type CheckTablesOptions, checkTables } from './router/findings/readiness/check-tables'
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
} from './router/request-service/request-service'
export type { AuthService, FoundSession, ProofOfPresence, RequestedEmailLogin, ServiceLogout } from './router/service'
export type { AccessTokenClaims } from './sessions/access-token'
export type { AccessTokenClaimsHook, ClaimsOf, HostClaims, Json } from './sessions/ask-for-claims'
export { findAuth, getAuth, getSession, getUser } from './sessions/current-auth'
export type { PublicSession } from './sessions/find-session'
export type { LoginOwesTasks, LoginResult, LoginResultOf, OpenedServerSession, SessionLoginResult, SessionOrigin } from './sessions/login'
export type { OpenSessionOptions } from './sessions/open-session'
export type { Reauthenticated, ServiceReauthentication } from './sessions/reauthentication/reauthenticate'
export type { KeptTokens } from './sessions/reissue-tokens'
export type { OAuthCodeExchange } from './social/app-redirect/exchange-code'
export type { AccessTokenInHand, IdTokenInHand, TokenInHand } from './social/token-in-hand'
export * from './store/auth-store'
export type { HostTypes, WithFields } from './store/host-types'
export type { HostTables } from './store/knex/default-tables'
export type { HostFieldMap, HostFieldOptions } from './store/knex/host-fields'
export type { JoinedStore } from './store/knex/join'
export { knexOn, type MysqlPool, type PgPool, type SqliteHandle } from './store/knex/knex-on'
export {
  createKnexStore,
  type HostTransaction,
  type KnexStore,
  type KnexStoreOptions,
  type PartialKnexStore,
} from './store/knex/knex-store'
export {
  type DrizzleRunnerOptions,
  type DrizzleSql,
  type DrizzleTransaction,
  drizzleRunner,
  type KyselyCompiledQuery,
  type KyselyRunnerOptions,
  type KyselyTransaction,
  kyselyRunner,
  type PrismaTransaction,
  prismaRunner,
  type RunnerOptions,
  type SqlAnswer,
  type SqlRunner,
  type SqlValue,
} from './store/knex/runners'
export { createAuthTables, migrationSource, migrationSourceFor } from './store/knex/schema'
export type { ColumnMap, TableOptions } from './store/knex/table-options'
export type { InsertedUser, OwnUserFields, RoleColumnOptions, UserColumnMap, UsersTableOptions } from './store/knex/users-table'
export { type PurgeOptions, purgeExpired } from './store/purge-expired'
export type { PublicUser } from './store/user-records'
export type { PublicTrustedDevice } from './trusted-devices/routes'
