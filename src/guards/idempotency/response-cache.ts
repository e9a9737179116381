import { ServiceUnavailableError } from '../../errors'
import { inTime } from '../../in-time'

/**
 * Stores responses for their repetitions. Ours works for one process; for several, pass an object for a shared store. Values are opaque text;
 * keys are 43 characters of base64url.
 */
export interface ResponseCache {
  /**
   * Writes the value if the key has none and returns null; else returns the existing value. It must be atomic: of several parallel callers
   * only one gets null. In Redis 7: `SET key value EX ttlSeconds NX GET`.
   */
  claim(key: string, value: string, ttlSeconds: number): Promise<string | null>
  /** Replaces the value. */
  set(key: string, value: string, ttlSeconds: number): Promise<void>
  delete(key: string): Promise<void>
}

const deadlineMs = 2_000

/**
 * Returns the result of the cache. If the cache fails or is late, the result is a 503, because it is unknown whether the request ran before.
 * `tooLate` gets a result that arrives late.
 */
export async function asked<T>(question: () => Promise<T>, tooLate: (answer: T) => unknown): Promise<T> {
  let isLate = false
  const answer = (async () => question())()
  answer.then((said) => isLate && tooLate(said)).catch(() => undefined) // an error is thrown below
  try {
    return await inTime(answer, deadlineMs, () => {
      isLate = true
      return new Error('The cache of answers is late.')
    })
  } catch (error) {
    throw new ServiceUnavailableError({ cause: error })
  }
}
