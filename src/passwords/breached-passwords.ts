import { createHash } from 'node:crypto'
import { ConfigurationError } from '../core/errors'
import { createHttpClient, type HttpClient } from '../core/http-client'
import { withTimeout } from '../core/with-timeout'
import type { PasswordPolicy } from './password-types'

export interface BreachedPasswordsOptions {
  /** The HTTP client. Default: a new client of `createHttpClient()`. */
  httpClient?: HttpClient
  /** The check rejects a password that appears at least this many times in breaches. Default 1. */
  minCount?: number
  /**
   * What happens if the service does not respond. `allow` (default) accepts the password and logs a warning. `refuse` rejects the password
   * with the rule `unchecked`.
   */
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
  /** When this response expires: `keptMs` after its arrival, in milliseconds of the monotonic clock. */
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
 * Returns the suffixes that appear at least `minCount` times. The lines that only pad the response have the count 0, so the result does not
 * contain them.
 * @throws Error if the response is not a list, for example the page of a proxy
 */
function suffixesOf(text: string, minCount: number): Buffer {
  const lines = text.split(/\r?\n/).filter((row) => row !== '')
  const rows = lines.map((row) => line.exec(row))
  if (rows.length === 0 || rows.includes(null)) throw new Error('Have I Been Pwned answered with something that is not a list.')
  return Buffer.concat(rows.flatMap((row) => (row && Number(row[2]) >= minCount ? [bytesOf(row[1] ?? '')] : [])))
}

/** Packs the 35 hexadecimal characters into bytes, because bytes take a third of the memory. */
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
