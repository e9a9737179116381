import { createHash } from 'node:crypto'
import { ConfigurationError } from '../core/errors'

/** Three rate limits: for a client with an address, for an address, and for a client. */
export interface SubjectRateLimits {
  readonly pair: RateLimit | false
  readonly email: RateLimit | false
  readonly client: RateLimit | false
}

/**
 * The limits that a host passes. A single limit replaces all three limits. Exception: for `throttle.login`, a single limit replaces only
 * `pair`. An object can set each limit. If a limit is missing in the object, its default applies. False: no limits.
 */
export type SubjectBudgetsInput = RateLimit | { pair?: RateLimit | false; email?: RateLimit | false; client?: RateLimit | false } | false

/** The rate limits of an account's known device. Unknown clients have separate limits. */
interface DeviceRateLimits {
  readonly login: RateLimit | false
  /** TOTP codes. Recovery codes have a separate limit of the same size. */
  readonly codes: RateLimit | false
  /** Requests for links. Each purpose has its own limit. */
  readonly links: RateLimit | false
  readonly mails: RateLimit | false
}

/** Limits for the number of mails to an address. */
interface MailRateLimits {
  /** Mails with links that the person requested. All of these limits apply. Empty: no limit. */
  readonly links: readonly RateLimit[]
  readonly notices: RateLimit | false
  /** Mails that another person causes, for example by a sign-up with a taken address. */
  readonly strangers: RateLimit | false
  /** Mails with the code of a login from an unknown device. All of these limits apply. Empty: no limit. */
  readonly deviceCodes: readonly RateLimit[]
}

/** The limits of mails that a host passes. A single limit applies to the mails with links. */
export type MailBudgetsInput =
  | false
  | RateLimit
  | {
      links?: readonly RateLimit[] | false
      notices?: RateLimit | false
      strangers?: RateLimit | false
      deviceCodes?: readonly RateLimit[] | false
    }

/**
 * Returns the host's limit, checked and frozen. If the host set no limit, returns the default. `false` turns the limit off.
 *
 * @throws ConfigurationError with the option's name
 */
export function resolveRateLimit(option: string, given: RateLimit | false | undefined, fallback: RateLimit): RateLimit | false {
  if (given === false) return false
  const rateLimit: unknown = given ?? fallback // a host without types can pass any value
  if (!isRateLimit(rateLimit))
    throw new ConfigurationError(`Option ${option} must be false or { attempts, windowSeconds }, whole numbers of at least 1.`)
  return Object.freeze({ attempts: rateLimit.attempts, windowSeconds: rateLimit.windowSeconds })
}

/**
 * Returns the three limits that the host set, with defaults for missing limits.
 * @param options.plain the limit that a single limit replaces; left out: all three limits
 * @throws ConfigurationError with the option's name
 */
export function resolveRateLimits(
  option: string,
  given: SubjectBudgetsInput | undefined,
  fallback: Record<keyof SubjectRateLimits, RateLimit>,
  { plain }: { plain?: keyof SubjectRateLimits } = {},
): SubjectRateLimits {
  const chosen = perSubject(option, given, plain === undefined ? subjects : [plain])
  const resolve = (name: keyof SubjectRateLimits) => resolveRateLimit(`${option}.${name}`, chosen[name], fallback[name])
  return Object.freeze({ pair: resolve('pair'), email: resolve('email'), client: resolve('client') })
}

/**
 * Returns the limits of mails that the host set, with defaults for missing limits.
 * @throws ConfigurationError with the option's name
 */
export function resolveMailRateLimits(option: string, given: MailBudgetsInput | undefined): MailRateLimits {
  const { links = mailDefaults.links, notices, strangers, deviceCodes = mailDefaults.deviceCodes } = perMail(option, given)
  return Object.freeze({
    links: resolveAll(`${option}.links`, links),
    notices: resolveRateLimit(`${option}.notices`, notices, mailDefaults.notices),
    strangers: resolveRateLimit(`${option}.strangers`, strangers, mailDefaults.strangers),
    deviceCodes: resolveAll(`${option}.deviceCodes`, deviceCodes),
  })
}

/** @throws ConfigurationError with the option's name */
function resolveAll(option: string, given: readonly RateLimit[] | false): readonly RateLimit[] {
  if (given !== false && !Array.isArray(given))
    throw new ConfigurationError(`Option ${option} must be false or a list of { attempts, windowSeconds }.`)
  return Object.freeze((given || []).flatMap((rateLimit, index) => resolveRateLimit(`${option}[${index}]`, rateLimit, rateLimit) || []))
}

const day = 86_400
const mailDefaults = {
  links: [
    { attempts: 5, windowSeconds: 3_600 },
    { attempts: 20, windowSeconds: day },
  ],
  notices: { attempts: 20, windowSeconds: day },
  strangers: { attempts: 1, windowSeconds: day },
  deviceCodes: [
    { attempts: 5, windowSeconds: 3_600 },
    { attempts: 20, windowSeconds: day },
  ],
} satisfies MailBudgetsInput

function perMail(option: string, given: MailBudgetsInput = {}): Exclude<MailBudgetsInput, false | RateLimit> {
  if (given === false) return { links: false, notices: false, strangers: false, deviceCodes: false }
  if (hasOnly<Exclude<MailBudgetsInput, false | RateLimit>>(given, ['links', 'notices', 'strangers', 'deviceCodes'])) return given
  if (hasOnly<RateLimit>(given, ['attempts', 'windowSeconds'])) return { links: [given] }
  throw new ConfigurationError(
    `Option ${option} must be false, { attempts, windowSeconds } for the links, or { links: [...], notices, strangers, deviceCodes: [...] }.`,
  )
}

const subjects = ['pair', 'email', 'client'] as const satisfies readonly (keyof SubjectRateLimits)[]

type PerSubject = { [Subject in keyof SubjectRateLimits]?: RateLimit | false | undefined }

function perSubject(option: string, given: SubjectBudgetsInput = {}, plain: readonly (keyof SubjectRateLimits)[]): PerSubject {
  if (given === false) return { pair: false, email: false, client: false }
  if (hasOnly<PerSubject>(given, subjects)) return given
  if (hasOnly<RateLimit>(given, ['attempts', 'windowSeconds'])) return Object.fromEntries(plain.map((name) => [name, given]))
  throw new ConfigurationError(refusal(option))
}

function isRateLimit(given: unknown): given is RateLimit {
  if (!hasOnly<Partial<RateLimit>>(given, ['attempts', 'windowSeconds'])) return false
  const { attempts, windowSeconds } = given
  return isWhole(attempts) && attempts <= 1_000_000 && isWhole(windowSeconds) && windowSeconds <= 31_536_000
}

/**
 * Returns true for an object that has only these names. So a misspelled name is rejected. Otherwise a spelling mistake could turn a
 * protection off.
 */
function hasOnly<T extends object>(given: unknown, names: readonly (keyof T & string)[]): given is T {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return false
  return Object.keys(given).every((name) => names.some((known) => known === name))
}

function refusal(option: string): string {
  return `Option ${option} must be false, { attempts, windowSeconds }, or { ${subjects.join(', ')} }. Each of them must be false or { attempts, windowSeconds }.`
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 1
}

/** The rate limits. `false`: no limit. */
export interface RateLimits {
  /** Requests of a client to a route. */
  readonly routes: RateLimit | false
  readonly login: SubjectRateLimits
  readonly signup: RateLimit | false
  /** Mails of requests without a session to addresses without a verified account. */
  readonly signupMails: RateLimit | false
  /** Requests for links. Each purpose has its own limit. */
  readonly links: SubjectRateLimits
  /** Mails to an address. */
  readonly mail: MailRateLimits
  readonly device: DeviceRateLimits
  /** Wrong codes of an account, over all routes that take a code. */
  readonly mfa: RateLimit | false
  /** Wrong mailed codes of one address. Requests of known devices count separately. */
  readonly codes: RateLimit | false
  /** Wrong passwords of a logged-in person, per session. Calls without a session share one limit per account. */
  readonly password: RateLimit
  /** Wrong passwords of a logged-in person, over all sessions of the account. */
  readonly passwordOfAccount: RateLimit
  /** Changes of an account that the link in a notice can undo. */
  readonly changes: RateLimit
}

/**
 * Counts attempts within fixed windows. A window starts at the first `increment` of a key. Later increments do not extend the window.
 * Several processes need a store in Redis or SQL. `memoryCounters()` is enough for a single process.
 */
export interface CounterStore {
  /**
   * Counts an attempt, atomically. `limit` is the limit that the caller compares the count with. A store that must drop keys keeps the keys
   * that have reached their limit.
   */
  increment(key: string, windowSeconds: number, limit?: number): Promise<{ count: number; resetSeconds: number }>
  /** Takes an attempt back. The count never goes below zero. */
  decrement(key: string): Promise<void>
  reset(key: string): Promise<void>
}

/** A rate limit: a number of attempts in a number of seconds. */
export interface Budget {
  /** Number of attempts that are allowed within a window. */
  attempts: number
  /** Length of a window in seconds. A window starts with the first attempt. */
  windowSeconds: number
}

export type RateLimit = Budget

/** The length of the key column of `auth_counters`. */
const longest = 255
const marker = 'sha256:'

/**
 * Returns the form of a key in a shared store. A short key of printable ASCII characters stays unchanged. For every other key, the function
 * returns a digest, because a database or driver can change or reject other characters (for example NUL). A key that looks like a digest
 * also becomes a digest, so different keys stay different.
 */
export function storedKey(key: string): string {
  const isPlain = key.length <= longest && /^[ -~]*$/.test(key) && !key.startsWith(marker)
  return isPlain ? key : marker + createHash('sha256').update(key, 'utf16le').digest('base64url')
}

/** The limits that a host sets in the option `throttle`. */
interface ThrottleInput {
  routes?: RateLimit | false
  login?: SubjectBudgetsInput
  signup?: RateLimit | false
  signupMails?: RateLimit | false
  links?: SubjectBudgetsInput
  mail?: MailBudgetsInput
  mfa?: RateLimit | false
  codes?: RateLimit | false
}

/** The defaults of every limit, and what the host sets instead. @throws ConfigurationError with the option's name */
export function rateLimitsOf(throttle: ThrottleInput = {}): RateLimits {
  const failures = { attempts: 5, windowSeconds: 900 }
  const email = { attempts: 50, windowSeconds: 900 }
  const login = resolveRateLimits(
    'throttle.login',
    throttle.login,
    { pair: failures, email, client: { attempts: 100, windowSeconds: 900 } },
    { plain: 'pair' },
  )
  const links = resolveRateLimits('throttle.links', throttle.links, {
    pair: failures,
    email,
    client: { attempts: 100, windowSeconds: 900 },
  })
  const mail = resolveMailRateLimits('throttle.mail', throttle.mail)
  const mfa = resolveRateLimit('throttle.mfa', throttle.mfa, failures)
  return Object.freeze({
    routes: resolveRateLimit('throttle.routes', throttle.routes, { attempts: 60, windowSeconds: 60 }),
    login,
    signup: resolveRateLimit('throttle.signup', throttle.signup, { attempts: 100, windowSeconds: 3_600 }),
    signupMails: resolveRateLimit('throttle.signupMails', throttle.signupMails, { attempts: 200, windowSeconds: 3_600 }),
    links,
    mail,
    mfa,
    codes: resolveRateLimit('throttle.codes', throttle.codes, { attempts: 20, windowSeconds: day }),
    device: Object.freeze({
      login: isOff(login) ? false : { attempts: 10, windowSeconds: 900 },
      codes: mfa && failures,
      links: isOff(links) ? false : failures,
      mails: mail.links.length === 0 ? false : { attempts: 5, windowSeconds: 3_600 },
    }),
    password: failures,
    passwordOfAccount: { attempts: 25, windowSeconds: 900 },
    changes: { attempts: 10, windowSeconds: 86_400 },
  })
}

function isOff(rateLimits: SubjectRateLimits): boolean {
  return Object.values(rateLimits).every((rateLimit) => rateLimit === false)
}
