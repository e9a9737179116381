import Joi from 'joi'
import type { AccessTokenClaimsHook } from './claims/ask-for-claims'
import type { Environment } from './config/environment'
import type { RouterSettings } from './config/every-setting'
import { refuseMisplaced } from './config/misplaced'
import { nearestName } from './config/nearest-name'
import { inputNames } from './config/settings'
import { ConfigurationError } from './errors'
import { refuseRequest } from './http/forgotten-call'
import type { GuardRequest } from './http/guard-request'
import { isJoiSchema, isStandardSchema, joiVersionOf, type SignupSchema } from './http/host-schema'
import type { Logger } from './logger'
import { type Mailer, type MailTemplates, mailTopics } from './mailer'
import { areaPageNames, type LayoutTemplate, linkPageNames, type PageTemplates } from './page-templates'
import type { PasswordHasher, PasswordPolicy } from './passwords/password-hasher'
import type { Provider } from './providers/passport-provider'
import type { OAuthTokens } from './providers/provider-client'
import type { AuthStore, UserRecord } from './store/auth-store'
import type { HostTypes, WithFields } from './store/host-types'
import type { HostTransaction } from './store/knex/knex-store'
import type { PublicUser } from './store/public-user'
import type { Languages } from './texts/texts'
import type { ThemeOptions } from './theme/theme'
import type { MailBudgetsInput, SubjectBudgetsInput } from './throttle/budget'
import type { Budget, CounterStore } from './throttle/counter-store'
import { seeTroubleshooting } from './troubleshooting'

/** Options of `createAuthRouter`. Pass objects and functions here, and plain data in `settings`. */
export interface AuthRouterOptions<Host extends HostTypes = HostTypes> {
  /** Plain data, in code or from the environment by `settingsFromEnv()`. docs/configuration.md lists every setting. */
  settings: RouterSettings
  /** Stores the rows: `createKnexStore({ knex })`, or your own adapter. */
  store: AuthStore
  /** The full public path of the mount. Redirect URIs and cookie paths contain it. Default `/auth`. */
  prefix?: string
  /** The clients by registration key. Routes contain the key, and `identities.provider` stores it. */
  providers?: Record<string, Provider>
  /** Which environment this is. Default: NODE_ENV; if that is unset, production. */
  environment?: Environment
  /** Sends the mails: `smtpMailer({ … })`, or an object of yours with `send`. Default: none. In production local accounts need one. */
  mailer?: Mailer
  /** Your own mails and pages instead of ours. */
  templates?: Templates
  /** Default `argon2idHasher()`. */
  passwordHasher?: PasswordHasher
  /** The look of the pages. Default: ours, with the name `mfaIssuer` or the host of `publicUrl`. */
  theme?: ThemeOptions
  /** Texts of the pages by language tag and key: a new language, or other words in one of ours. A missing text is shown in English. */
  languages?: Languages
  /** The rules for new passwords. Default: 12 characters to 1024 bytes, and none of the common passwords. */
  passwordPolicy?: PasswordPolicy
  /** Returns true if a mailed link must not sign in to this account. It is called before a link is made and when a link is redeemed. */
  refusesEmailLink?: (user: WithFields<UserRecord, Host>) => boolean | Promise<boolean>
  /**
   * Returns your own claims for each access token, at its top level: `(user, { amr }) => ({ roles: ['editor'] })`. They are a plain object of
   * at most 1 KiB as JSON, without reserved names. It runs at every login and refresh, outside of our transactions, for at most 5 seconds. If
   * it fails, there is no token (503).
   */
  accessTokenClaims?: AccessTokenClaimsHook<Host>
  /**
   * Your own check before expensive work, such as a CAPTCHA. Throw an `AppError` to reject the request with it; any other error is logged and
   * becomes a 500. It runs after the rate limit of the route and before every other rate limit. `req.body` is the parsed JSON, which is not
   * validated yet. Action `link` is a request for an activation, reset or verification link.
   */
  guardRequest?: GuardRequest
  /**
   * Receives the provider's tokens after a login or link by redirect, so that you can call the provider's API:
   * `(user, provider, tokens) => …`. We never store them; encrypt them with `sealer(key)` before you do. It runs outside of our transactions,
   * for at most 5 seconds. If it fails, the login still succeeds. It does not run for a token that a client posts, nor for a link that ends
   * with a ticket.
   */
  onProviderTokens?: ProviderTokensHook<Host>
  /** Your own fields of a sign-up, and what else a sign-up does. */
  signup?: SignupOptions<Host>
  /**
   * Runs inside the transaction in which the first verification of an address takes an account over. Revoke here what your app has
   * granted to the account. If it throws, the take-over is rolled back. It may run again after a conflict.
   */
  onTakeOver?: TakeOverHook<Host>
  /**
   * Compares the tables with what the store writes. It begins at once and nothing waits for it, except `auth.ready()`. `false`: no
   * comparison. `ignore`: keys of findings to ignore. Default: every finding counts.
   */
  checkTables?: false | { readonly ignore: readonly string[] }
  /**
   * Makes the time of responses, and of the work after them, independent of whether an address has an account. Default: true, but false in
   * environment `test`, so that tests need not wait. Only there `false` is accepted. For immediate responses elsewhere set
   * `timingGridMilliseconds: 0`.
   */
  timingDefence?: boolean
  /** The rate limits. `false` turns one limit off. */
  throttle?: {
    /** Counters shared by all processes. Default: in the memory of this process. */
    counters?: CounterStore
    /** Requests of one client to one route. Default 60 per 60 s. */
    routes?: Budget | false
    /**
     * Failed logins. Default per 900 s: 5 of one client for one address (`pair`), 50 for one address, 100 of one client. A single limit
     * replaces `pair`. A device that the account knows first has ten attempts of its own.
     */
    login?: SubjectBudgetsInput
    /** Sign-ups of one client. Default 20 per 3600 s. */
    signup?: Budget | false
    /** Wrong second-factor codes of one account. Default 5 per 900 s. */
    mfa?: Budget | false
    /**
     * Requests for activation, reset and verification links, per purpose. Default per 900 s: 5 of one client for one address (`pair`),
     * 50 for one address, 20 of one client.
     */
    links?: SubjectBudgetsInput
    /**
     * Mails to one address. Default: 5 links an hour and 20 a day, 20 notices a day, and 1 mail a day that another person causes. If you pass
     * one limit instead of an object, it replaces the two limits of the links.
     */
    mail?: MailBudgetsInput
  }
  /** An object with `info`, `warn` and `error`, such as pino. Default: the console. */
  logger?: Logger
  /** The clock, for tests. Default: the system's. */
  now?: () => Date
  /** No longer used. Still accepted, so that boot can log a warning that it does nothing. */
  loginWithProvider?: unknown
  /** No longer used. Still accepted, so that boot can log a warning that it does nothing. */
  issueMfaToken?: unknown
}

export interface SignupOptions<Host extends HostTypes = HostTypes> {
  /**
   * Validates your own fields; `email`, `password` and `name` keep our rules. Pass a `Joi.object()`, or an object schema of any library that
   * implements Standard Schema v1 (zod, valibot, arktype). It also validates changes of these fields by `PATCH /me`.
   */
  schema?: SignupSchema
  /**
   * Runs before the address is looked up, so that a rejection reveals nothing about the address. Throw your own error, or return false for
   * 403 FORBIDDEN. `input` is the result of the schema, without the password.
   */
  admit?: (input: SignupInput) => unknown
  /**
   * Runs inside the transaction of the sign-up. If it throws, no account is created, or the earlier sign-up stays as it was. It may run again
   * after a conflict. It runs only if no active account has the address, so an error from it reveals that. Reject in `admit` instead. `body`
   * is the result of the schema, without the password.
   */
  onSignup?: (user: WithFields<UserRecord, Host>, body: object, store: AuthStore, unit: SignupUnit) => void | Promise<void>
}

/** The input of `admit`: the address, the name, and the fields that the schema returned. */
export interface SignupInput {
  /** The address in lower case. */
  readonly email: string
  /** Null: no name was sent. */
  readonly name: string | null
  readonly [field: string]: unknown
}

/** Called after a take-over. `user` is the new row. */
export type TakeOverHook<Host extends HostTypes = HostTypes> = (
  user: WithFields<UserRecord, Host>,
  store: AuthStore,
  unit: Pick<SignupUnit, 'trx'>,
) => void | Promise<void>

/** `provider` is the registration key. `tokens.raw` is the whole response of the token endpoint. */
export type ProviderTokensHook<Host extends HostTypes = HostTypes> = (
  user: WithFields<PublicUser, Host>,
  provider: string,
  tokens: OAuthTokens,
) => void | Promise<void>

/** The transaction in which `onSignup` runs. */
export interface SignupUnit {
  /** For rows in your own tables. Never commit it or roll it back. Null: the store is not from `createKnexStore`. */
  readonly trx: HostTransaction | null
  /** True: a sign-up for an account that already waits for its activation. */
  readonly isRepeat: boolean
}

export interface Templates {
  /** Mails by topic. Ours is used for a topic that is left out. */
  mails?: MailTemplates
  /** Wraps every page of the account area and every page behind a link, instead of our own look. */
  layout?: LayoutTemplate
  /** A document or body by page. Ours is used for a page that is left out. */
  pages?: PageTemplates
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
  onTakeOver: true,
  guardRequest: true,
  onProviderTokens: true,
  checkTables: true,
  timingDefence: true,
  throttle: true,
  logger: true,
  now: true,
  loginWithProvider: true,
  issueMfaToken: true,
} satisfies Record<keyof AuthRouterOptions, true>

/**
 * Checks every option before anything is built.
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
  checkThrottle(options.throttle)
  checkPasswordPolicy(options.passwordPolicy)
  checkSignup(options.signup)
  checkTemplates(options.templates)
}

/**
 * Rejects unknown options, because a typo must not silently turn a protection off.
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

/** Returns a check that a value has these methods. Otherwise a missing method would be a TypeError at a login, instead of an error at boot. */
export function hasMethods(...names: string[]): Rule {
  return (value) => isObject(value) && names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function') // just checked
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function optional(isRight: Rule): Rule {
  return (value) => value === undefined || isRight(value)
}

/** The methods that a store must have. The methods of an optional table are checked only if the table is there. */
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
  const { users } = Object(value) as { users?: unknown } // any value
  const hasFields = (Object(users) as { fields?: unknown }).fields instanceof Set // boot checks read the fields
  return hasMethods('transaction')(value) && hasFields
}

/** Rejects a store that lacks a method, and names the method. An adapter for an earlier version can lack one. */
function checkStoreVerbs(store: AuthStore): void {
  if ('refreshTokens' in store && store.refreshTokens !== undefined)
    throw new ConfigurationError(
      'Option store: refreshTokens is no longer part of an AuthStore, because `sessions` keeps refresh tokens too; see docs/upgrading.md.',
    )
  for (const [name, { isOptional, verbs }] of Object.entries(storeVerbs)) {
    const table: unknown = Object(store)[name]
    if (isOptional && table === undefined) continue
    const missing = verbs.find((verb) => !hasMethods(verb)(table))
    if (missing)
      throw new ConfigurationError(
        `Option store: ${name} lacks the method ${missing}(); storeContract() says what it has to do (docs/store-contract.md).`,
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
  ['onTakeOver', optional((value) => typeof value === 'function'), 'a function of a user and the store of the transaction'],
  ['onProviderTokens', optional((value) => typeof value === 'function'), 'a function of a user, a provider and its tokens'],
  ['timingDefence', optional((value) => typeof value === 'boolean'), 'true or false'],
  ['throttle', optional(isObject), 'an object: { counters, routes, login, signup, mfa, links, mail }'],
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

function checkThrottle(throttle: AuthRouterOptions['throttle'] = {}): void {
  refuseUnknownOptions('throttle', throttle, ['counters', 'routes', 'login', 'signup', 'mfa', 'links', 'mail'])
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
      `Option signup.schema is a schema of joi ${theirs}, and doorward uses joi ${Joi.version}; install joi ${Joi.version}, or give a schema that speaks Standard Schema v1 (joi 18, zod, valibot, arktype). ${seeTroubleshooting('signup-schema-of-another-joi')}`,
    )
  if (isJoiSchema(schema) ? schema.type === 'object' : isStandard) return
  throw new ConfigurationError(
    'Option signup.schema must be a Joi.object(), or an object schema that speaks Standard Schema v1 (zod, valibot, arktype), of the fields you add to a signup.',
  )
}

/** Checks the option passwordPolicy. It has the same limits as the settings that it replaces: passwordMinLength and passwordMaxBytes. */
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
