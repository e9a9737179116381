import Joi from 'joi'
import type { Environment } from './config/environment'
import { nearestName } from './config/nearest-name'
import type { SettingsInput } from './config/settings'
import { ConfigurationError } from './errors'
import type { Logger } from './logger'
import { type Mailer, type MailTemplates, mailTopics } from './mailer'
import { type PageTemplates, pageNames } from './page-templates'
import type { PasswordHasher, PasswordPolicy } from './passwords/password-hasher'
import type { ProviderClient } from './providers/provider-client'
import type { AuthStore, UserRecord } from './store/auth-store'
import type { BudgetPairInput } from './throttle/budget'
import type { Budget, CounterStore } from './throttle/counter-store'

/** Collaborators come as objects, from code; what is plain data is in `settings`. */
export interface AuthRouterOptions {
  /** docs/configuration.md; `settingsFromEnv()` reads it from the environment. */
  settings: SettingsInput
  /** Where rows live: `createKnexStore({ knex })`, or your own adapter. */
  store: AuthStore
  /** The full public path of the mount; part of redirect URIs and cookie paths. Default `/auth`. */
  prefix?: string
  /** Registration key -> client. The key is what routes use and what `identities.provider` stores. */
  providers?: Record<string, ProviderClient>
  /** Whose rules hold; without it NODE_ENV says, and unset counts as production. */
  environment?: Environment
  mailer?: Mailer
  /** Your own words instead of ours. */
  templates?: Templates
  /** Default `argon2idHasher()`. */
  passwordHasher?: PasswordHasher
  passwordPolicy?: PasswordPolicy
  /** True: this account may not be entered by a mailed link; asked before one is made and when one is redeemed. */
  refusesEmailLink?: (user: UserRecord) => boolean | Promise<boolean>
  signup?: SignupOptions
  throttle?: {
    /** Shared by all processes; default: in this process. */
    counters?: CounterStore
    /** Calls of one client per route. Default 60 per 60 s. */
    routes?: Budget | false
    /** Failed logins. Default 5 per 900 s per address, and the same per client. */
    login?: BudgetPairInput
    /** Signups of one client. Default 20 per 3600 s. */
    signup?: Budget | false
    /** Wrong second-factor codes of one account. Default 5 per 900 s. */
    mfa?: Budget | false
    /** Requests for activation, reset and verification links, per purpose. Default 5 per 900 s per address, 20 per client. */
    links?: BudgetPairInput
    /** Mails to one address, of all kinds. Default 5 per 3600 s. */
    mail?: Budget | false
  }
  /** Default: the console. */
  logger?: Logger
  /** The only clock. */
  now?: () => Date
  /** Legacy override, no longer called: accepted so that boot can say so. */
  loginWithProvider?: unknown
  /** Legacy override, no longer called: accepted so that boot can say so. */
  issueMfaToken?: unknown
}

export interface SignupOptions {
  /** The host's own fields, checked beside ours; `email` and `password` keep our rules. */
  schema?: Joi.ObjectSchema
  /**
   * Runs inside the signup's unit of work, with its store: what it throws leaves no account. It may run again after a
   * conflict. `body` is what the schemas let through, without the password.
   */
  onSignup?: (user: UserRecord, body: object, store: AuthStore) => void | Promise<void>
}

export interface Templates {
  /** Topic -> the mail; what is left out stays ours. */
  mails?: MailTemplates
  /** Page -> the document; what is left out stays ours. */
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
  passwordHasher: true,
  passwordPolicy: true,
  refusesEmailLink: true,
  signup: true,
  throttle: true,
  logger: true,
  now: true,
  loginWithProvider: true,
  issueMfaToken: true,
} satisfies Record<keyof AuthRouterOptions, true>

/** Looked at before anything is built: each option is known, and is what it has to be. @throws ConfigurationError */
export function checkOptions(options: AuthRouterOptions): void {
  if (!isObject(options)) throw new ConfigurationError('createAuthRouter() needs options: { settings, store, … }.')
  refuseUnknownOptions('createAuthRouter', options)
  for (const [name, isRight, fix] of rules) {
    if (!isRight(options[name])) throw new ConfigurationError(`Option ${name} must be ${fix}.`)
  }
  checkStoreVerbs(options.store)
  checkThrottle(options.throttle)
  checkPasswordPolicy(options.passwordPolicy)
  checkSignup(options.signup)
  checkTemplates(options.templates)
}

/** @throws ConfigurationError for an option that does not exist: a typo must not switch a protection off in silence */
export function refuseUnknownOptions(where: string, given: object, names: readonly string[] = Object.keys(known)): void {
  for (const name of Object.keys(given)) {
    if (names.includes(name)) continue
    throw new ConfigurationError(
      `${where}: unknown option ${JSON.stringify(name.slice(0, 64))}; the nearest known one is ${nearestName(name, names)}.`,
    )
  }
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
  userTokens: { isOptional: false, verbs: ['insert', 'find', 'consume', 'consumeAllForUser', 'wasConsumed'] },
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
  ['templates', optional(isObject), 'an object: { mails }'],
  ['passwordHasher', optional(hasMethods('hash', 'verify', 'needsRehash')), 'a PasswordHasher; argon2idHasher() makes one'],
  ['passwordPolicy', optional(isObject), 'an object: { minLength, maxBytes, requireComplexity, check }'],
  ['refusesEmailLink', optional((value) => typeof value === 'function'), 'a function of a user that says true or false'],
  ['signup', optional(isObject), 'an object: { schema, onSignup }'],
  ['throttle', optional(isObject), 'an object: { counters, routes, login, signup, mfa, links, mail }'],
  ['logger', optional(hasMethods('info', 'warn', 'error')), 'an object with the methods info, warn and error, as pino has'],
  ['now', optional((value) => typeof value === 'function'), 'a function that returns a Date'],
]

function checkThrottle(throttle: AuthRouterOptions['throttle'] = {}): void {
  refuseUnknownOptions('throttle', throttle, ['counters', 'routes', 'login', 'signup', 'mfa', 'links', 'mail'])
  if (optional(hasMethods('increment', 'decrement', 'reset'))(throttle.counters)) return
  throw new ConfigurationError(
    'Option throttle.counters must be a CounterStore with increment, decrement and reset; memoryCounters() makes one.',
  )
}

function checkTemplates(templates: Templates = {}): void {
  refuseUnknownOptions('templates', templates, ['mails', 'pages'])
  const { mails = {}, pages = {} } = templates
  if (!isObject(mails)) throw new ConfigurationError('Option templates.mails must be an object of functions, by topic.')
  refuseUnknownOptions('templates.mails', mails, mailTopics)
  for (const [topic, template] of Object.entries(mails)) {
    if (template === undefined || typeof template === 'function') continue
    throw new ConfigurationError(`Option templates.mails.${topic} must be a function of a mail that returns { subject, text, html }.`)
  }
  if (!isObject(pages)) throw new ConfigurationError('Option templates.pages must be an object of functions, by page.')
  refuseUnknownOptions('templates.pages', pages, pageNames)
  for (const [page, template] of Object.entries(pages)) {
    if (template === undefined || typeof template === 'function') continue
    throw new ConfigurationError(`Option templates.pages.${page} must be a function of a page that returns an HTML document.`)
  }
}

function checkSignup(signup: SignupOptions = {}): void {
  refuseUnknownOptions('signup', signup, ['schema', 'onSignup'])
  const { schema, onSignup } = signup
  if (schema !== undefined && !(Joi.isSchema(schema) && schema.type === 'object'))
    throw new ConfigurationError('Option signup.schema must be a Joi.object() schema of the fields you add to a signup.')
  if (onSignup !== undefined && typeof onSignup !== 'function') throw new ConfigurationError('Option signup.onSignup must be a function.')
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
