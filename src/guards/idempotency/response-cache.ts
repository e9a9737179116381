import { ServiceUnavailableError } from '../../core/errors'
import { withTimeout } from '../../core/with-timeout'

/**
 * Stores responses for repeated requests. The default cache works for one process. For several processes, pass an object for a shared
 * store. A value is a text that only the library reads. A key has 43 characters of base64url.
 */
export interface ResponseCache {
  /**
   * Writes the value if the key has no value, and returns null. Otherwise returns the existing value. The operation must be atomic: only
   * one of several parallel callers gets null. In Redis 7: `SET key value EX ttlSeconds NX GET`.
   */
  claim(key: string, value: string, ttlSeconds: number): Promise<string | null>
  /** Replaces the value. */
  set(key: string, value: string, ttlSeconds: number): Promise<void>
  delete(key: string): Promise<void>
}

const deadlineMs = 2_000

/**
 * Returns the result of the cache. If the cache fails or responds too late, the function throws a 503 error. In that case, the library
 * cannot know whether the request ran before. `tooLate` gets a result that arrives too late.
 */
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
