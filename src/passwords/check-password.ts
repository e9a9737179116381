import { createHash } from 'node:crypto'
import { ConfigurationError, ValidationError } from '../core/errors'
import { createHttpClient, type HttpClient } from '../core/http-client'
import { describeError, type Logger } from '../core/logger'
import { isTextKey, localized } from '../core/texts/phrase-book'
import { withTimeout } from '../core/with-timeout'
import type { PasswordPolicy } from './password-types'
import { normalPassword } from './verify-password'

/**
 * NIST SP 800-63B section 3.1.1.2. The rules, in order:
 * - `malformed`: half of a UTF-16 pair. All such halves have one encoding, so different passwords would be equal. Only calls without HTTP
 *   reach it.
 * - `too_short` { min } code points, `too_long` { max } bytes of UTF-8, `missing_classes` { missing }, `too_common`.
 * - The host's own rule, by the rule's name.
 * @throws ValidationError with flat details { rule, ... }, never with the password
 */
export async function checkPassword(
  ctx: { passwordPolicy: PasswordPolicy; logger: Logger },
  typed: string,
  about: { email: string; name: string | null },
): Promise<void> {
  const password = normalPassword(typed) // as `hashPassword` hashes it
  const { minLength = 12, maxBytes = 1_024, requireComplexity = false } = ctx.passwordPolicy
  if (!password.isWellFormed()) refuse({ rule: 'malformed' })
  if ([...password].length < minLength) refuse({ rule: 'too_short', min: minLength })
  if (Buffer.byteLength(password) > maxBytes) refuse({ rule: 'too_long', max: maxBytes })
  const missing = requireComplexity ? missingClasses(password) : []
  if (missing.length > 0) refuse({ rule: 'missing_classes', missing })
  if (isGuessable(password, about)) refuse({ rule: 'too_common' })
  const rule = await askHost(ctx, password, about)
  if (rule !== null) refuse({ rule })
}

function refuse(details: { rule: string; [more: string]: unknown }): never {
  throw passwordRefusal(details)
}

/** Letters and digits of every script count. Every other character is special, for example a blank or an emoji. */
const classes = { lower: /\p{Ll}/u, upper: /\p{Lu}/u, digit: /\p{Nd}/u, special: /[^\p{L}\p{N}]/u }

function missingClasses(password: string): string[] {
  return Object.entries(classes)
    .filter(([, characterClass]) => !characterClass.test(password))
    .map(([name]) => name)
}

/** People often append a year, a date or `123!` to a word that is too short. */
const longestTail = 8

/** Shorter words of the account appear in many good passwords by chance. */
const shortestWord = 4

/**
 * An attacker first guesses common passwords, words of the account and repetitions, with up to eight digits and signs. The list of common
 * passwords alone would not help: only 308 of its 49,233 entries reach the default minimum of 12 characters.
 */
export function isGuessable(password: string, about: { email: string; name: string | null }): boolean {
  const folded = fold(password)
  const words = ownWords(about)
  const isKnown = (word: string) => isListed(word) || words.has(word)
  return headsOf(folded).some((head) => isKnown(head) || isRepeated(head, isKnown))
}

/** With and without its last one to eight digits and ASCII signs. People choose emoji deliberately. */
function headsOf(password: string): string[] {
  const characters = [...password]
  const tail = characters.slice(-longestTail).findLastIndex((character) => /[^ -@[-`{-~]/.test(character)) + 1
  const cuts = Math.min(longestTail, characters.length) - tail
  return Array.from({ length: cuts + 1 }, (_, cut) => characters.slice(0, characters.length - cut).join(''))
}

/** `aaaaaaaaaaaa`, `abc1abc1abc1`, or a known word that repeats. */
function isRepeated(password: string, isKnown: (word: string) => boolean): boolean {
  const unit = /^(.{1,32}?)\1+$/su.exec(password)?.[1]
  return unit !== undefined && ([...unit].length <= 4 || isKnown(unit))
}

/** Of the address, the local part and the name: whole, in parts, and without separators. */
function ownWords({ email, name }: { email: string; name: string | null }): ReadonlySet<string> {
  const address = fold(email)
  const localPart = address.slice(0, address.lastIndexOf('@'))
  const words = [address, localPart, fold(name ?? '')].flatMap((word) => [word, ...partsOf(word), partsOf(word).join('')])
  return new Set(words.filter((word) => [...word].length >= shortestWord))
}

function partsOf(word: string): string[] {
  return word.split(/[^\p{L}\p{N}]+/u)
}

/** For comparisons. The hasher gets the password as the person typed it. */
function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}

let listed: ReadonlySet<string> | undefined

/** In lower case. The list takes about 25 ms and 15 MB, so it is loaded when the first person chooses a password. */
export function isListed(password: string): boolean {
  listed ??= load()
  return listed.has(password)
}

function load(): ReadonlySet<string> {
  const { dictionary } = require('@zxcvbn-ts/language-common') as { dictionary: { 'passwords-common': string[] } } // according to its types
  return new Set(dictionary['passwords-common'])
}

export interface BreachedPasswordsOptions {
  /** The HTTP client. Default: a new client of `createHttpClient()`. */
  httpClient?: HttpClient
  /** The check rejects a password that appears at least this many times in breaches. Default 1. */
  minCount?: number
  /** If the service does not respond, `allow` (default) accepts with a logged warning, `refuse` rejects with the rule `unchecked`. */
  onFailure?: 'allow' | 'refuse'
}

const service = 'https://api.pwnedpasswords.com/range/'
const deadlineMs = 1_000
const keptMs = 3_600_000
const mostKept = 1_000
const prefixLength = 5

/**
 * Returns a `passwordPolicy.check` that rejects passwords in the list of Have I Been Pwned, with the rule `breached`. The service gets the
 * first five of the forty characters of the password's SHA-1. The service pads its response, so the length reveals nothing
 * (https://haveibeenpwned.com/API/v3#PwnedPasswords). The service has one second to respond. The check keeps at most 1,000 responses, each
 * for one hour. If the service does not respond and `onFailure` is `allow`, the check throws HttpClientError or Error. The caller then logs
 * a warning and accepts the password.
 * @throws ConfigurationError for an option out of range
 */
export function breachedPasswords(options: BreachedPasswordsOptions = {}): NonNullable<PasswordPolicy['check']> {
  const { httpClient, minCount, onFailure } = checkOptions(options)
  const kept = new Map<string, KeptRange>()

  return async (password) => {
    const digest = createHash('sha1').update(password).digest('hex').toUpperCase()
    try {
      const suffixes = await rangeOf(kept, digest.slice(0, prefixLength), (prefix) => ask(httpClient, prefix, minCount))
      return has(suffixes, digest.slice(prefixLength)) ? 'breached' : null
    } catch (error) {
      if (onFailure === 'refuse') return 'unchecked'
      throw error
    }
  }
}

interface KeptRange {
  /** `keptMs` after the response's arrival, in milliseconds of the monotonic clock. */
  readonly until: number
  readonly suffixes: Buffer
}

async function rangeOf(kept: Map<string, KeptRange>, prefix: string, ask: (prefix: string) => Promise<Buffer>): Promise<Buffer> {
  const known = kept.get(prefix)
  if (known && known.until > performance.now()) return known.suffixes
  const suffixes = await ask(prefix)
  kept.delete(prefix) // so that the newest entry is last
  kept.set(prefix, { until: performance.now() + keptMs, suffixes })
  const [oldest] = kept.keys()
  if (kept.size > mostKept && oldest !== undefined) kept.delete(oldest)
  return suffixes
}

async function ask(httpClient: HttpClient, prefix: string, minCount: number): Promise<Buffer> {
  const headers = { 'add-padding': 'true', 'user-agent': 'doorward' }
  const call = httpClient(service + prefix, { headers, signal: AbortSignal.timeout(deadlineMs) })
  const { status, body } = await withTimeout(call, deadlineMs, () => new Error('Have I Been Pwned did not answer within a second.'))
  if (status !== 200) throw new Error(`Have I Been Pwned answered with status ${status}.`)
  return suffixesOf(Buffer.from(body).toString(), minCount)
}

const line = /^([0-9A-F]{35}):(\d+)$/
const bytesOfSuffix = 18

/**
 * At least `minCount` times. Lines that only pad the response have the count 0.
 * @throws Error if the response is not a list, for example the page of a proxy
 */
function suffixesOf(text: string, minCount: number): Buffer {
  const lines = text.split(/\r?\n/).filter((row) => row !== '')
  const rows = lines.map((row) => line.exec(row))
  if (rows.length === 0 || rows.includes(null)) throw new Error('Have I Been Pwned answered with something that is not a list.')
  return Buffer.concat(rows.flatMap((row) => (row && Number(row[2]) >= minCount ? [bytesOf(row[1] ?? '')] : [])))
}

/** 35 hexadecimal characters take three times the memory of their bytes. */
function bytesOf(suffix: string): Buffer {
  return Buffer.from(`${suffix}0`, 'hex')
}

function has(suffixes: Buffer, suffix: string): boolean {
  const wanted = bytesOf(suffix)
  for (let at = 0; at < suffixes.length; at += bytesOfSuffix) if (wanted.equals(suffixes.subarray(at, at + bytesOfSuffix))) return true
  return false
}

function checkOptions(options: BreachedPasswordsOptions): Required<BreachedPasswordsOptions> {
  const { httpClient, minCount = 1, onFailure = 'allow', ...unknown } = options
  const [extra] = Object.keys(unknown)
  if (extra !== undefined) throw new ConfigurationError(`breachedPasswords: unknown option ${extra}.`)
  if (httpClient !== undefined && typeof httpClient !== 'function')
    throw new ConfigurationError('breachedPasswords: httpClient must be a function, such as createHttpClient() returns.')
  if (!Number.isInteger(minCount) || minCount < 1)
    throw new ConfigurationError('breachedPasswords: minCount must be a whole number from 1 on.')
  if (onFailure !== 'allow' && onFailure !== 'refuse')
    throw new ConfigurationError("breachedPasswords: onFailure must be 'allow' or 'refuse'.")
  return { httpClient: httpClient ?? createHttpClient({ timeoutMs: deadlineMs }), minCount, onFailure }
}

const askDeadlineMs = 3_000

/** Null: accepted, or the rule threw or is late. A breach service that is down must not stop every sign-up and reset. */
export async function askHost(
  { passwordPolicy, logger }: { passwordPolicy: PasswordPolicy; logger: Logger },
  password: string,
  about: { email: string; name: string | null },
): Promise<string | null> {
  if (!passwordPolicy.check) return null
  try {
    // The async arrow turns an error that the check throws into a rejection.
    const answer = (async (): Promise<unknown> => passwordPolicy.check?.(password, { email: about.email, name: about.name }))()
    return ruleOf(await withTimeout(answer, askDeadlineMs, late), password)
  } catch (error) {
    logger.warn({ error: describeError(error) }, 'doorward: passwordPolicy.check failed; the password was accepted without it')
    return null
  }
}

function late(): Error {
  return Object.assign(new Error('passwordPolicy.check took too long.'), { code: 'TIMEOUT' })
}

/** Null: accepted. An invalid name becomes `refused` and is never repeated, because it may be the password. */
function ruleOf(answer: unknown, password: string): string | null {
  if (answer === null || answer === undefined) return null
  const isName = typeof answer === 'string' && /^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(answer)
  return isName && !answer.toLowerCase().includes(password.toLowerCase()) ? answer : 'refused'
}

export function passwordRefusal(details: { rule: string; [more: string]: unknown }): ValidationError {
  const key = `error.password.${details.rule}`
  return new ValidationError({ details, explains: isTextKey(key) ? localized(key, { min: String(details['min']) }) : anyRefusal })
}

export const anyRefusal = localized('error.password_refused')
