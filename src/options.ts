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

/** Collaborators come as objects, from code; what is plain data is in `settings`. */
export interface AuthRouterOptions<Host extends HostTypes = HostTypes> {
  /** Plain data, in code or from the environment by `settingsFromEnv()`. docs/configuration.md lists every setting. */
  settings: RouterSettings
  /** Where rows live: `createKnexStore({ knex })`, or your own adapter. */
  store: AuthStore
  /** The full public path of the mount; part of redirect URIs and cookie paths. Default `/auth`. */
  prefix?: string
  /** Registration key -> client. The key is what routes use and what `identities.provider` stores. */
  providers?: Record<string, Provider>
  /** Whose rules hold; without it NODE_ENV says, and unset counts as production. */
  environment?: Environment
  /** Sends the mails: `smtpMailer({ … })`, or an object of yours with `send`. Default: none; in production local accounts need one. */
  mailer?: Mailer
  /** Your own words instead of ours. */
  templates?: Templates
  /** Default `argon2idHasher()`. */
  passwordHasher?: PasswordHasher
  /** How the pages look like your product. Default: ours, under `mfaIssuer` or the host of `publicUrl`. */
  theme?: ThemeOptions
  /** Texts of the pages by language tag and key: a language of your own, or other words in one of ours. What is left out is English. */
  languages?: Languages
  /** Which passwords may be chosen. Default: 12 characters to 1024 bytes, and none of the common ones. */
  passwordPolicy?: PasswordPolicy
  /** True: this account may not be entered by a mailed link; asked before one is made and when one is redeemed. */
  refusesEmailLink?: (user: WithFields<UserRecord, Host>) => boolean | Promise<boolean>
  /**
   * Claims of your own in each access token, at its top level: `(user, { amr }) => ({ roles: ['editor'] })`. A plain object of at most 1 KiB
   * as JSON, without reserved names, within 5 seconds. Runs at every login and refresh, outside of our transactions; where it fails, nobody
   * gets a token (503).
   */
  accessTokenClaims?: AccessTokenClaimsHook<Host>
  /**
   * Your check in front of what costs something, such as a CAPTCHA: throw an `AppError` to refuse with it; anything else that is thrown is a 500,
   * logged. It runs behind the route's limit and before every other one, with the parsed JSON in `req.body`, of which nothing has been
   * checked yet. `link` is a request for an activation, reset or verification link.
   */
  guardRequest?: GuardRequest
  /**
   * Gets the provider's tokens at a login or link by redirect, so that you may call the provider's API: `(user, provider, tokens) => …`. We never
   * store them; seal them by `sealer(key)` before you do. Runs outside of our transactions, within 5 seconds; where it fails, the login
   * stands. Not for a token in hand, nor where a link ends with a ticket.
   */
  onProviderTokens?: ProviderTokensHook<Host>
  /** Your own fields of a signup, and what else a signup does. */
  signup?: SignupOptions<Host>
  /**
   * Runs inside the transaction in which the first verification of an address takes an account over. Revoke here what your app has
   * granted to the account. If it throws, the take-over is rolled back. It may run again after a conflict.
   */
  onTakeOver?: TakeOverHook<Host>
  /**
   * Whether the tables are compared with what the store writes, at once and without waiting (`auth.ready()` waits). `false`: never.
   * `ignore`: keys of findings that do not count. Default: they are, and every finding counts.
   */
  checkTables?: false | { readonly ignore: readonly string[] }
  /**
   * Whether the answers and the work after them hide by their time which address has an account. Default: true, but false in
   * environment `test`, so that tests need not wait. Elsewhere `false` is refused: set `timingGridMilliseconds: 0` for answers at once.
   */
  timingDefence?: boolean
  /** How often somebody may try. `false` turns one limit off. */
  throttle?: {
    /** Shared by all processes; default: in this process. */
    counters?: CounterStore
    /** Calls of one client per route. Default 60 per 60 s. */
    routes?: Budget | false
    /**
     * Failed logins. Default per 900 s: 5 of one client for one address (`pair`), 50 for one address, 100 of one client. A plain budget is
     * that of the pair. A device that the account knows has ten of its own first.
     */
    login?: SubjectBudgetsInput
    /** Signups of one client. Default 20 per 3600 s. */
    signup?: Budget | false
    /** Wrong second-factor codes of one account. Default 5 per 900 s. */
    mfa?: Budget | false
    /**
     * Requests for activation, reset and verification links, per purpose. Default per 900 s: 5 of one client for one address (`pair`),
     * 50 for one address, 20 of one client.
     */
    links?: SubjectBudgetsInput
    /**
     * Mails to one address. Default: links 5 an hour and 20 a day, notices 20 a day, mails that somebody else causes 1 a day. One
     * plain budget is that of the links.
     */
    mail?: MailBudgetsInput
  }
  /** An object with `info`, `warn` and `error`, such as pino. Default: the console. */
  logger?: Logger
  /** The clock, for tests. Default: the system's. */
  now?: () => Date
  /** Legacy override, no longer called: accepted so that boot can say so. */
  loginWithProvider?: unknown
  /** Legacy override, no longer called: accepted so that boot can say so. */
  issueMfaToken?: unknown
}

export interface SignupOptions<Host extends HostTypes = HostTypes> {
  /**
   * Your own fields, checked beside ours; `email`, `password` and `name` keep our rules. A `Joi.object()`, or an object schema
   * of any
   * library that speaks Standard Schema v1 (zod, valibot, arktype). It is asked again when a person changes fields (`PATCH /me`).
   */
  schema?: SignupSchema
  /**
   * Asked before the address is looked up, so that its refusal tells nothing about the address: throw an error of yours, or return
   * false for 403 FORBIDDEN. `input` is what the schema let through, without the password.
   */
  admit?: (input: SignupInput) => unknown
  /**
   * Runs inside the transaction of the signup: what it throws leaves no account, or the older signup as it was. It may run again after
   * a conflict. It runs for a free address and for a pending account, so what it throws tells that no active account has the address;
   * refuse in `admit` what nobody may learn from. `body` is
   * what the
   * schema let through, without the password.
   */
  onSignup?: (user: WithFields<UserRecord, Host>, body: object, store: AuthStore, unit: SignupUnit) => void | Promise<void>
}

/** What a signup is asked with: the address, the name, and the fields that the schema let through. */
export interface SignupInput {
  /** The address, lower-cased. */
  readonly email: string
  /** Null: none was sent. */
  readonly name: string | null
  readonly [field: string]: unknown
}

/** `user` is the row after the take-over. */
export type TakeOverHook<Host extends HostTypes = HostTypes> = (
  user: WithFields<UserRecord, Host>,
  store: AuthStore,
  unit: Pick<SignupUnit, 'trx'>,
) => void | Promise<void>

/** `provider` is the registration key; `tokens.raw` is the whole answer of the token endpoint. */
export type ProviderTokensHook<Host extends HostTypes = HostTypes> = (
  user: WithFields<PublicUser, Host>,
  provider: string,
  tokens: OAuthTokens,
) => void | Promise<void>

/** The transaction in which `onSignup` runs. */
export interface SignupUnit {
  /** For rows in tables of your own; never commit it or roll it back. Null: the store is not from `createKnexStore`. */
  readonly trx: HostTransaction | null
  /** True: somebody signed up again with the address of an account that waits for its activation. */
  readonly isRepeat: boolean
}

export interface Templates {
  /** Topic -> the mail; what is left out stays ours. */
  mails?: MailTemplates
  /** Put around every page of the account area and behind links, in the place of our own look. */
  layout?: LayoutTemplate
  /** Page -> its document or body; what is left out stays ours. */
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

/** Looked at before anything is built: each option is known, and is what it has to be. @throws ConfigurationError */
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

/** @throws ConfigurationError for an option that does not exist: a typo must not switch a protection off in silence */
export function refuseUnknownOptions(where: string, given: object, names: readonly string[] = Object.keys(known)): void {
  refuseRequest(where, [given])
  for (const name of Object.keys(given)) {
    if (names.includes(name)) continue
    throw new ConfigurationError(
      `${where}: unknown option ${JSON.stringify(name.slice(0, 64))}; the nearest known one is ${nearestName(name, names)}. ${seeTroubleshooting('unknown-names')}`,
    )
  }
}

/** @throws ConfigurationError for what is no path of a mount */
export function requirePrefix(prefix: unknown): void {
  if (typeof prefix === 'string' && /^(?:\/[A-Za-z0-9._~-]+)+$/.test(prefix)) return
  throw new ConfigurationError(
    `Option prefix must be the full public path of the mount: it starts with '/' and does not end with one, for example '/auth'. ${seeTroubleshooting('prefix-with-a-slash-at-its-end')}`,
  )
}

type Rule = (value: unknown) => boolean

/** Found here, a forgotten method is a sentence at boot instead of a TypeError at somebody's login. */
export function hasMethods(...names: string[]): Rule {
  return (value) => isObject(value) && names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function') // just checked
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function optional(isRight: Rule): Rule {
  return (value) => value === undefined || isRight(value)
}

/** The verbs of a store that boot asks for; those of optional tables only where the table is there. */
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
  const { users } = Object(value) as { users?: unknown } // whatever was passed
  const hasFields = (Object(users) as { fields?: unknown }).fields instanceof Set // boot checks read it
  return hasMethods('transaction')(value) && hasFields
}

/** An adapter that was written for an earlier version lacks a verb: its author has to know which. */
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

/** The limits are those of the settings passwordMinLength and passwordMaxBytes, which the policy replaces. */
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
