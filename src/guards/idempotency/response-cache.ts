import { ServiceUnavailableError } from '../../core/errors'
import { withTimeout } from '../../core/with-timeout'
import type { CapturedAnswer } from './captured-answer'

/**
 * Stores responses for repeated requests. The default works for one process. For several, pass an object for a shared store. A value is a
 * text that only the library reads. A key has 43 characters of base64url.
 */
export interface ResponseCache {
  /**
   * Writes the value if the key has none, and returns null. Otherwise returns the existing value. Must be atomic: of several parallel
   * callers, only one gets null. In Redis 7: `SET key value EX ttlSeconds NX GET`.
   */
  claim(key: string, value: string, ttlSeconds: number): Promise<string | null>
  /** Replaces the value. */
  set(key: string, value: string, ttlSeconds: number): Promise<void>
  delete(key: string): Promise<void>
}

const deadlineMs = 2_000

/** If the cache fails or is late, nobody knows whether the request ran before: 503. `tooLate` gets a late result. */
export async function asked<T>(question: () => Promise<T>, tooLate: (answer: T) => unknown): Promise<T> {
  let isLate = false
  const answer = (async () => question())()
  answer.then((said) => isLate && tooLate(said)).catch(() => undefined) // `withTimeout` below also gets the error
  try {
    return await withTimeout(answer, deadlineMs, () => {
      isLate = true
      return new Error('The cache of answers is late.')
    })
  } catch (error) {
    throw new ServiceUnavailableError({ cause: error })
  }
}

interface Entry {
  readonly fingerprint: string
  /** Null while the request is still running. */
  readonly answer: CapturedAnswer | null
}

export function entryOf({ fingerprint, answer }: Entry): string {
  return JSON.stringify({ fingerprint, answer: answer && { ...answer, body: answer.body.toString('base64') } })
}

/** @throws ServiceUnavailableError for a value that doorward did not write: the request may have run before */
export function readEntry(text: unknown): Entry {
  try {
    const { fingerprint, answer } = JSON.parse(String(text)) as {
      fingerprint: string
      answer: (Omit<CapturedAnswer, 'body'> & { body: string }) | null
    } // any other value is rejected below
    if (typeof fingerprint !== 'string' || answer === undefined) throw new TypeError('The cache of answers holds something else.')
    return { fingerprint, answer: answer && { ...answer, body: Buffer.from(answer.body, 'base64') } }
  } catch (error) {
    throw new ServiceUnavailableError({ cause: error })
  }
}

interface Held {
  readonly value: string
  readonly endsAt: number
}

/**
 * Limits the number and the bytes, and drops the oldest responses first. Never drops a claim, whose request could then run twice: full of
 * claims, it rejects a new request. Later calls drop expired entries, so there is no timer.
 */
export function memoryResponses(
  options: { maxEntries?: number; maxBytes?: number; now?: () => number } = {},
): ResponseCache & { size(): { entries: number; bytes: number } } {
  const { maxEntries = 10_000, maxBytes = 64 * 1024 * 1024, now = () => performance.now() } = options
  // Entries of one kind mostly have the same lifetime, so each map is in the order of expiry.
  const claims = new Map<string, Held>()
  const answers = new Map<string, Held>()
  let bytes = 0

  function drop(key: string): void {
    const held = claims.get(key) ?? answers.get(key)
    if (!held) return
    bytes -= costOf(key, held.value)
    claims.delete(key)
    answers.delete(key)
  }

  function hold(map: Map<string, Held>, key: string, value: string, ttlSeconds: number): void {
    drop(key)
    map.set(key, { value, endsAt: now() + ttlSeconds * 1000 })
    bytes += costOf(key, value)
  }

  function sweep(): void {
    const time = now()
    for (const map of [claims, answers])
      for (const [key, { endsAt }] of map) {
        if (endsAt > time) break
        drop(key)
      }
  }

  const isOver = (entries: number, more: number) => claims.size + answers.size + entries > maxEntries || bytes + more > maxBytes

  function makeRoom(entries: number, more: number): void {
    for (const key of answers.keys()) {
      if (!isOver(entries, more)) return
      drop(key)
    }
  }

  return {
    async claim(key, value, ttlSeconds) {
      sweep()
      const held = claims.get(key) ?? answers.get(key)
      if (held && held.endsAt > now()) return held.value
      drop(key)
      makeRoom(1, costOf(key, value))
      if (isOver(1, costOf(key, value))) throw new Error('The cache of answers holds nothing but requests that are running.')
      hold(claims, key, value, ttlSeconds)
      return null
    },
    async set(key, value, ttlSeconds) {
      hold(answers, key, value, ttlSeconds)
      makeRoom(0, 0)
    },
    async delete(key) {
      drop(key)
    },
    size: () => ({ entries: claims.size + answers.size, bytes }),
  }
}

/** One byte for each character, and about 200 bytes for the map. */
function costOf(key: string, value: string): number {
  return key.length + value.length + 200
}
