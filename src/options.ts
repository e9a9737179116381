import Joi from 'joi'
import type { Environment } from './core/config/environment'
import type { RouterSettings } from './core/config/every-setting'
import { inputNames, nearestName, refuseMisplaced } from './core/config/settings'
import { ConfigurationError } from './core/errors'
import type { Logger } from './core/logger'
import { type Mailer, mailTopics } from './core/mailer'
import { areaPageNames, linkPageNames, type Templates } from './core/templates'
import type { Languages } from './core/texts/phrase-book'
import type { ThemeOptions } from './core/theme/theme'
import { seeTroubleshooting } from './core/troubleshooting'
import type { Captcha, CaptchaWhen } from './http/captcha'
import { refuseRequest } from './http/forgotten-call'
import type { GuardRequest } from './http/guard-request'
import { isJoiSchema, isStandardSchema, joiVersionOf, type SignupSchema } from './http/host-schema'
import { checkLoginTasks, type LoginTask } from './login-tasks/login-task'
import type { AuditLog } from './observers/audit-log'
import type { PasswordHasher, PasswordPolicy } from './passwords/password-types'
import type { Provider } from './providers/passport-provider'
import type { OAuthTokens } from './providers/provider-client'
import type { CounterStore, MailBudgetsInput, RateLimit, SubjectBudgetsInput } from './rate-limits/rate-limit'
import type { AccessTokenClaimsHook } from './sessions/ask-for-claims'
import type { AuthStore, UserRecord } from './store/auth-store'
import type { HostTypes, WithFields } from './store/host-types'
import type { HostTransaction } from './store/knex/knex-store'
import type { PublicUser } from './store/user-records'

/** The options of `createAuthRouter`. Pass objects and functions here, and plain data in `settings`. */
export interface AuthRouterOptions<Host extends HostTypes = HostTypes> {
  /** Plain data, in code or from the environment with `settingsFromEnv()`. docs/configuration.md lists every setting. */
  settings: RouterSettings
  /** Stores the rows: `createKnexStore({ knex })`, or your own adapter. */
  store: AuthStore
  /** The full public path of the mount. Redirect URIs and cookie paths contain this path. Default `/auth`. */
  prefix?: string
  /** The provider clients by registration key. Routes contain the key, and `identities.provider` stores the key. */
  providers?: Record<string, Provider>
  /** The environment of the app. Default: NODE_ENV. If NODE_ENV is not set, the default is production. */
  environment?: Environment
  /**
   * Sends the mails: `smtpMailer({ … })`, or your own object with `send`. Default: no mailer. In production, local accounts need a mailer.
   */
  mailer?: Mailer
  /** Your own mails and pages, which replace ours. */
  templates?: Templates
  /** Hashes and verifies passwords. Default `argon2idHasher()`. */
  passwordHasher?: PasswordHasher
  /** The look of the pages. Default: our look, with the name `mfaIssuer` or the host of `publicUrl`. */
  theme?: ThemeOptions
  /**
   * Texts of the pages by language tag and key. Add a new language, or replace texts of our languages. A missing text is shown in English.
   */
  languages?: Languages
  /** The rules for new passwords. Default: 12 characters to 1024 bytes, and no common password. */
  passwordPolicy?: PasswordPolicy
  /**
   * Returns true if a mailed link must not log in to this account. The function is called before a link is made and before a link is
   * redeemed.
   */
  refusesEmailLink?: (user: WithFields<UserRecord, Host>) => boolean | Promise<boolean>
  /**
   * Returns your own claims for each access token: `(user, { amr }) => ({ roles: ['editor'] })`. The claims are at the top level of the
   * token. Return a plain object of at most 1 KiB as JSON, without reserved names. The function runs at every login and refresh, outside
   * our transactions, for at most 5 seconds. If the function fails, doorward issues no token and answers 503.
   */
  accessTokenClaims?: AccessTokenClaimsHook<Host>
  /**
   * Your own check before expensive work, for example a CAPTCHA. Throw an `AppError` to reject the request with that error. Any other error
   * is logged and becomes a 500. The check runs after the rate limit of the route and before every other rate limit. `req.body` is the
   * parsed JSON, which is not validated yet. The action `link` is a request for an activation, reset or verification link.
   */
  guardRequest?: GuardRequest
  /**
   * A check that a person sends the form: `turnstile()`, `proofOfWork()`, or your own `verify`. It is asked for sign-ups, mailed links and
   * logins by email, after the body was validated. Our pages show its widget.
   */
  captcha?: Captcha
  /**
   * Decides for each request whether the captcha is asked: `(req, { action }) => boolean`. Without it, every action but `login` is asked.
   * The captcha is asked if the function throws or takes longer than 5 seconds.
   */
  captchaWhen?: CaptchaWhen
  /**
   * Receives the provider's tokens after a login or link by redirect: `(user, provider, tokens) => …`. With the tokens you can call the
   * provider's API. doorward never stores the tokens. If you store them, encrypt them first with `sealer(key)`. The function runs outside
   * our transactions, for at most 5 seconds. If the function fails, the login still succeeds. The function does not run for a token that a
   * client posts. The function does not run for a link that ends with a ticket.
   */
  onProviderTokens?: ProviderTokensHook<Host>
  /**
   * What a login can owe before its session begins: `secondFactorTask({ when })`, `newPasswordTask()` and `task({ key, when, complete })`.
   * Default: nothing.
   */
  loginTasks?: readonly LoginTask[]
  /** Your own fields and your own functions for a sign-up. */
  signup?: SignupOptions<Host>
  /**
   * Runs inside the transaction of a take-over. A take-over happens at the first verification of an address. The take-over removes
   * everything that an attacker may have added to the account. Revoke here what your app has granted to the account. If the function
   * throws, the take-over is rolled back. The function can run again after a conflict.
   */
  onTakeOver?: TakeOverHook<Host>
  /**
   * Runs inside the transaction in which an account uses an invitation: `(user, data, { trx }) => …`. `data` is what the invitation was
   * created with. For example, add the account to a team here. If the function throws an `AppError`, that is the response. Any other error
   * is a 500. In both cases nothing changes. The function can run again after a conflict.
   */
  onInvitationAccepted?: InvitationAcceptedHook<Host>
  /**
   * Runs inside the transaction that deletes an account, before its rows are deleted: `(user, store, { trx }) => …`. Delete here what your
   * app keeps of the person. If the function throws an `AppError`, that is the response. Any other error is a 500. In both cases nothing
   * changes. The function can run again after a conflict.
   */
  onDelete?: DeletionHook<Host>
  /**
   * Returns what your app knows of a person, as a JSON object: `(user) => ({ orders: … })`. It becomes `host` in the export of the account.
   * The function runs outside our transactions, for at most 5 seconds. If it fails, the response is a 503.
   */
  onExport?: ExportHook<Host>
  /** The log of `auditLog(knex)`. It records the events of this router, its purge deletes old rows, and the export of an account reads it. */
  auditLog?: AuditLog
  /**
   * Compares the tables with the columns that the store writes. The comparison begins at once, and `createAuthRouter` does not wait for it.
   * `auth.ready()` waits for the result. A call of the store also waits, but at most 5 seconds. `false`: no comparison. `ignore`: keys of
   * findings to ignore. Default: every finding counts.
   */
  checkTables?: false | { readonly ignore: readonly string[] }
  /**
   * Deletes expired rows in the background: one process at a time, in small batches. `false`: no purge; then run `doorward purge` from a
   * job. Default `{ everyMinutes: 60 }`. In the environment `test` the default is false.
   */
  purge?: false | { readonly everyMinutes: number }
  /**
   * True: each change of an account is also a row of `auth_outbox`, written in the transaction of the change. `auth.outbox.deliver(handler)`
   * delivers the rows, also after a crash. Default false.
   */
  outbox?: boolean
  /**
   * Makes the time of responses, and of the work after responses, independent of whether an address has an account. Default: true. In the
   * environment `test` the default is false, so that tests need not wait. Only that environment accepts `false`. For immediate responses in
   * other environments, set `timingGridMilliseconds: 0`.
   */
  timingDefence?: boolean
  /** The rate limits. `false` turns a limit off. */
  throttle?: {
    /** Where the counts are stored. Default: in the memory of this process. Several processes need a shared store. */
    counters?: CounterStore
    /** Requests of a client to a route. Default 60 per 60 s. */
    routes?: RateLimit | false
    /**
     * Failed logins. Default per 900 s: 5 of a client for an address (`pair`), 50 for an address, 100 of a client. If you pass one limit
     * instead of an object, this limit replaces `pair`. A known device of the account has a separate limit of ten attempts, which is used
     * first.
     */
    login?: SubjectBudgetsInput
    /** Sign-ups of a client. Default 100 per 3600 s. */
    signup?: RateLimit | false
    /**
     * Mails that requests without a session send to addresses without a verified account. Default 200 per 3600 s. Past it, the event
     * `signup.flood` tells you. With `captcha`, sign-ups, activation mails and logins by email then need a passed captcha. Without
     * `captcha`, every mail goes out.
     */
    signupMails?: RateLimit | false
    /** Wrong second-factor codes of an account. Default 5 per 900 s. */
    mfa?: RateLimit | false
    /**
     * Wrong mailed codes of one address, with `mailedCodes: 'both'`. Default 20 per 86400 s. Then mails to the address contain only the
     * link, until the window ends or a login of the account succeeds.
     */
    codes?: RateLimit | false
    /**
     * Requests for activation, reset and verification links, per purpose. Default per 900 s: 5 of a client for an address (`pair`), 50 for
     * an address, 100 of a client.
     */
    links?: SubjectBudgetsInput
    /**
     * Mails to an address. Default: 5 links an hour, 20 links a day, 20 notices a day, 1 mail a day that another person causes, and 5 codes
     * for an unknown device an hour, 20 a day (`deviceCodes`).
     * If you pass one limit instead of an object, this limit replaces the two limits of the links.
     */
    mail?: MailBudgetsInput
  }
  /** An object with `info`, `warn` and `error`, for example pino. Default: the console. */
  logger?: Logger
  /** The clock, for tests. Default: the system's clock. */
  now?: () => Date
  /** No longer used. doorward accepts the option and logs a warning that the option does nothing. */
  loginWithProvider?: unknown
  /** No longer used. doorward accepts the option and logs a warning that the option does nothing. */
  issueMfaToken?: unknown
}

export interface SignupOptions<Host extends HostTypes = HostTypes> {
  /**
   * Validates your own fields. For `email`, `password` and `name`, our rules apply. Pass a `Joi.object()`, or an object schema of any
   * library that implements Standard Schema v1 (zod, valibot, arktype). The schema also validates changes of these fields by `PATCH /me`.
   */
  schema?: SignupSchema
  /**
   * Runs before the address is looked up, so that a rejection reveals nothing about the address. Throw your own error, or return false for
   * 403 FORBIDDEN. `input` is the result of the schema, without the password.
   */
  admit?: (input: SignupInput) => unknown
  /**
   * Runs inside the transaction of the sign-up. If the function throws, no account is created, or the earlier sign-up stays unchanged. The
   * function can run again after a conflict.
   *
   * The function runs only if no active account has the address, so an error of the function reveals that fact. Reject in `admit` instead.
   * `body` is the result of the schema, without the password.
   */
  onSignup?: (user: WithFields<UserRecord, Host>, body: object, store: AuthStore, unit: SignupUnit) => void | Promise<void>
}

/** The input of `admit`: the address, the name, and the fields that the schema returned. */
export interface SignupInput {
  /** The address in lower case. */
  readonly email: string
  /** Null: the client sent no name. */
  readonly name: string | null
  readonly [field: string]: unknown
}

/** Called inside the transaction of a take-over, after the changes. `user` is the new row. */
export type TakeOverHook<Host extends HostTypes = HostTypes> = (
  user: WithFields<UserRecord, Host>,
  store: AuthStore,
  unit: Pick<SignupUnit, 'trx'>,
) => void | Promise<void>

/** Called inside the transaction in which an account uses an invitation. `user` is the row of the active account. */
export type InvitationAcceptedHook<Host extends HostTypes = HostTypes> = (
  user: WithFields<UserRecord, Host>,
  data: unknown,
  unit: Pick<SignupUnit, 'trx'>,
) => void | Promise<void>

/** Called inside the transaction that deletes an account. `user` is the row that is about to be deleted. */
export type DeletionHook<Host extends HostTypes = HostTypes> = (
  user: WithFields<UserRecord, Host>,
  store: AuthStore,
  unit: Pick<SignupUnit, 'trx'>,
) => void | Promise<void>

/** Returns what the host knows of a person. */
export type ExportHook<Host extends HostTypes = HostTypes> = (user: WithFields<UserRecord, Host>) => object | Promise<object>

/** Receives a provider's tokens. `provider` is the registration key. `tokens.raw` is the whole response of the token endpoint. */
export type ProviderTokensHook<Host extends HostTypes = HostTypes> = (
  user: WithFields<PublicUser, Host>,
  provider: string,
  tokens: OAuthTokens,
) => void | Promise<void>

/** The transaction in which `onSignup` runs. */
export interface SignupUnit {
  /**
   * The transaction for rows in your own tables. Never commit this transaction and never roll it back. Null: the store is not from
   * `createKnexStore`.
   */
  readonly trx: HostTransaction | null
  /** True: the sign-up is for an account that already waits for its activation. */
  readonly isRepeat: boolean
}

const known = {
  settings: true,
  store: true,
  prefix: true,
  providers: true,
  environment: true,
  mailer: true,
  templates: true,
  theme: true,
  languages: true,
  passwordHasher: true,
  passwordPolicy: true,
  refusesEmailLink: true,
  accessTokenClaims: true,
  signup: true,
  loginTasks: true,
  onTakeOver: true,
  onInvitationAccepted: true,
  onDelete: true,
  onExport: true,
  auditLog: true,
  guardRequest: true,
  captcha: true,
  captchaWhen: true,
  onProviderTokens: true,
  checkTables: true,
  purge: true,
  outbox: true,
  timingDefence: true,
  throttle: true,
  logger: true,
  now: true,
  loginWithProvider: true,
  issueMfaToken: true,
} satisfies Record<keyof AuthRouterOptions, true>

/**
 * Checks every option, before any object is built.
 * @throws ConfigurationError for an unknown or wrong option
 */
export function checkOptions(options: AuthRouterOptions): void {
  if (!isObject(options)) throw new ConfigurationError('createAuthRouter() needs options: { settings, store, … }.')
  refuseMisplaced('createAuthRouter', options, { optionNames: Object.keys(known), settingNames: inputNames })
  refuseUnknownOptions('createAuthRouter', options)
  for (const [name, isRight, fix] of rules) {
    if (!isRight(options[name])) throw new ConfigurationError(`Option ${name} must be ${fix}.`)
  }
  checkStoreVerbs(options.store)
  checkIgnore(options.checkTables)
  checkPurge(options.purge)
  checkThrottle(options.throttle)
  checkPasswordPolicy(options.passwordPolicy)
  checkSignup(options.signup)
  checkLoginTasks(options.loginTasks)
  checkTemplates(options.templates)
}

/**
 * Rejects unknown options, because a typing error must not turn a protection off.
 * @throws ConfigurationError
 */
export function refuseUnknownOptions(where: string, given: object, names: readonly string[] = Object.keys(known)): void {
  refuseRequest(where, [given])
  for (const name of Object.keys(given)) {
    if (names.includes(name)) continue
    throw new ConfigurationError(
      `${where}: unknown option ${JSON.stringify(name.slice(0, 64))}; the nearest known one is ${nearestName(name, names)}. ${seeTroubleshooting('unknown-names')}`,
    )
  }
}

/**
 * Rejects a text that is not the path of a mount.
 * @throws ConfigurationError
 */
export function requirePrefix(prefix: unknown): void {
  if (typeof prefix === 'string' && /^(?:\/[A-Za-z0-9._~-]+)+$/.test(prefix)) return
  throw new ConfigurationError(
    `Option prefix must be the full public path of the mount: it starts with '/' and does not end with one, for example '/auth'. ${seeTroubleshooting('prefix-with-a-slash-at-its-end')}`,
  )
}

type Rule = (value: unknown) => boolean

/** Returns a check that a value has these methods. Without the check, a missing method would be a TypeError at a login. */
export function hasMethods(...names: string[]): Rule {
  return (value) => isObject(value) && names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function') // just checked
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function optional(isRight: Rule): Rule {
  return (value) => value === undefined || isRight(value)
}

/** The methods that a store must have. The methods of an optional table are checked only if the store has the table. */
const storeVerbs: Readonly<Record<string, { readonly isOptional: boolean; readonly verbs: readonly string[] }>> = {
  users: { isOptional: false, verbs: ['find', 'findByEmail', 'insert', 'update', 'lock', 'recordLogin'] },
  userTokens: { isOptional: false, verbs: ['insert', 'find', 'consume', 'consumeAllForUser', 'listOpen', 'wasConsumed'] },
  identities: { isOptional: true, verbs: ['findWithUser', 'insert', 'recordLogin'] },
  sessions: {
    isOptional: true,
    verbs: ['insert', 'find', 'lock', 'rotate', 'update', 'touch', 'listForUser', 'revoke', 'revokeForUser', 'deleteExpired'],
  },
}

function isStore(value: unknown): boolean {
  const { users } = Object(value) as { users?: unknown } // `Object` accepts any value
  const hasFields = (Object(users) as { fields?: unknown }).fields instanceof Set // the boot checks read the fields
  return hasMethods('transaction')(value) && hasFields
}

/** Rejects a store that lacks a method, and names the method. */
function checkStoreVerbs(store: AuthStore): void {
  for (const [name, { isOptional, verbs }] of Object.entries(storeVerbs)) {
    const table: unknown = Object(store)[name]
    if (isOptional && table === undefined) continue
    const missing = verbs.find((verb) => !hasMethods(verb)(table))
    if (missing)
      throw new ConfigurationError(
        `Option store: ${name} lacks the method ${missing}(); storeContract() tests what it must do (docs/store.md#an-adapter-of-your-own).`,
      )
  }
}

const rules: readonly (readonly [keyof AuthRouterOptions, Rule, string])[] = [
  ['store', isStore, 'an AuthStore; createKnexStore({ knex }) makes one'],
  ['prefix', optional((value) => typeof value === 'string'), "a path such as '/auth'"],
  ['providers', optional(isObject), 'an object of provider clients, for example { google: new GoogleClient({ … }) }'],
  ['mailer', optional(hasMethods('send')), 'an object with the method send(mail)'],
  ['templates', optional(isObject), 'an object: { mails, layout, pages }'],
  ['passwordHasher', optional(hasMethods('hash', 'verify', 'needsRehash')), 'a PasswordHasher; argon2idHasher() makes one'],
  ['passwordPolicy', optional(isObject), 'an object: { minLength, maxBytes, requireComplexity, check }'],
  ['refusesEmailLink', optional((value) => typeof value === 'function'), 'a function of a user that says true or false'],
  ['accessTokenClaims', optional((value) => typeof value === 'function'), 'a function of a user that returns an object of claims'],
  ['signup', optional(isObject), 'an object: { schema, admit, onSignup }'],
  ['guardRequest', optional((value) => typeof value === 'function'), 'a function of a request and { action }'],
  ['captcha', optional(isObject), 'an object: { verify, html, csp, field, failOpen }'],
  ['captchaWhen', optional((value) => typeof value === 'function'), 'a function of a request and { action } that says true or false'],
  ['onTakeOver', optional((value) => typeof value === 'function'), 'a function of a user and the store of the transaction'],
  ['onInvitationAccepted', optional((value) => typeof value === 'function'), 'a function of a user and the data of the invitation'],
  ['onDelete', optional((value) => typeof value === 'function'), 'a function of a user and the store of the transaction'],
  ['onExport', optional((value) => typeof value === 'function'), 'a function of a user that returns an object'],
  ['auditLog', optional(hasMethods('watch', 'list', 'forget')), 'the log of auditLog(knex)'],
  ['onProviderTokens', optional((value) => typeof value === 'function'), 'a function of a user, a provider and its tokens'],
  ['outbox', optional((value) => typeof value === 'boolean'), 'true or false'],
  ['timingDefence', optional((value) => typeof value === 'boolean'), 'true or false'],
  ['throttle', optional(isObject), 'an object: { counters, routes, login, signup, signupMails, mfa, codes, links, mail }'],
  ['logger', optional(hasMethods('info', 'warn', 'error')), 'an object with the methods info, warn and error, as pino has'],
  ['now', optional((value) => typeof value === 'function'), 'a function that returns a Date'],
]

function checkIgnore(option: AuthRouterOptions['checkTables']): void {
  if (option === undefined || option === false) return
  const ignore: unknown = isObject(option) ? option.ignore : null
  if (!Array.isArray(ignore) || !ignore.every((key) => typeof key === 'string'))
    throw new ConfigurationError(
      "Option checkTables must be false, or { ignore: [...] } with keys of findings such as 'users.email:unique' (docs/store.md).",
    )
  refuseUnknownOptions('checkTables', option, ['ignore'])
}

function checkPurge(option: AuthRouterOptions['purge']): void {
  if (option === undefined || option === false) return
  if (!isObject(option) || !isWhole(option.everyMinutes, 5, 1_440))
    throw new ConfigurationError('Option purge must be false, or { everyMinutes } with a whole number from 5 to 1440 (docs/store.md).')
  refuseUnknownOptions('purge', option, ['everyMinutes'])
}

function checkThrottle(throttle: AuthRouterOptions['throttle'] = {}): void {
  refuseUnknownOptions('throttle', throttle, ['counters', 'routes', 'login', 'signup', 'signupMails', 'mfa', 'codes', 'links', 'mail'])
  if (optional(hasMethods('increment', 'decrement', 'reset'))(throttle.counters)) return
  throw new ConfigurationError(
    'Option throttle.counters must be a CounterStore with increment, decrement and reset; memoryCounters() makes one.',
  )
}

function checkTemplates(templates: Templates = {}): void {
  refuseUnknownOptions('templates', templates, ['mails', 'layout', 'pages'])
  const { mails = {}, layout, pages = {} } = templates
  if (layout !== undefined && typeof layout !== 'function')
    throw new ConfigurationError('Option templates.layout must be a function of the parts of a page that returns an HTML document.')
  if (!isObject(mails)) throw new ConfigurationError('Option templates.mails must be an object of functions, by topic.')
  refuseUnknownOptions('templates.mails', mails, mailTopics)
  for (const [topic, template] of Object.entries(mails)) {
    if (template === undefined || typeof template === 'function') continue
    throw new ConfigurationError(`Option templates.mails.${topic} must be a function of a mail that returns { subject, text, html }.`)
  }
  if (!isObject(pages)) throw new ConfigurationError('Option templates.pages must be an object of functions, by page.')
  refuseUnknownOptions('templates.pages', pages, [...linkPageNames, ...areaPageNames])
  for (const [page, template] of Object.entries(pages)) {
    if (template === undefined || typeof template === 'function') continue
    throw new ConfigurationError(`Option templates.pages.${page} must be a function of a page that returns HTML.`)
  }
}

function checkSignup(signup: SignupOptions = {}): void {
  refuseUnknownOptions('signup', signup, ['schema', 'admit', 'onSignup'])
  const { schema, admit, onSignup } = signup
  if (schema !== undefined) checkSignupSchema(schema)
  if (admit !== undefined && typeof admit !== 'function') throw new ConfigurationError('Option signup.admit must be a function.')
  if (onSignup !== undefined && typeof onSignup !== 'function') throw new ConfigurationError('Option signup.onSignup must be a function.')
}

function checkSignupSchema(schema: SignupSchema): void {
  const [theirs, isStandard] = [joiVersionOf(schema), isStandardSchema(schema)]
  if (theirs !== null && theirs !== Joi.version && !isStandard)
    throw new ConfigurationError(
      `Option signup.schema is a schema of joi ${theirs}, but doorward uses joi ${Joi.version}. Install joi ${Joi.version}, or pass a schema of Standard Schema v1 (joi 18, zod, valibot, arktype). ${seeTroubleshooting('signup-schema-of-another-joi')}`,
    )
  if (isJoiSchema(schema) ? schema.type === 'object' : isStandard) return
  throw new ConfigurationError(
    'Option signup.schema must be a Joi.object(), or an object schema of Standard Schema v1 (zod, valibot, arktype). It describes the fields that you add to a sign-up.',
  )
}

/**
 * Checks the option passwordPolicy. The same limits apply to the settings passwordMinLength and passwordMaxBytes, which this option
 * replaces.
 */
function checkPasswordPolicy(policy: PasswordPolicy = {}): void {
  refuseUnknownOptions('passwordPolicy', policy, ['minLength', 'maxBytes', 'requireComplexity', 'check'])
  const { minLength = 12, maxBytes = 1024, requireComplexity = false, check } = policy
  const wrong =
    (!isWhole(minLength, 8, 64) && 'minLength must be a whole number from 8 to 64') ||
    (!isWhole(maxBytes, 64, 4096) && 'maxBytes must be a whole number from 64 to 4096') ||
    (typeof requireComplexity !== 'boolean' && 'requireComplexity must be true or false') ||
    (check !== undefined && typeof check !== 'function' && 'check must be a function')
  if (wrong) throw new ConfigurationError(`Option passwordPolicy.${wrong}.`)
}

function isWhole(value: unknown, least: number, most: number): boolean {
  return Number.isInteger(value) && Number(value) >= least && Number(value) <= most
}
