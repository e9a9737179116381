import { ServiceUnavailableError } from '../../errors'
import { inTime } from '../../in-time'

/**
 * Where answers wait for their repetition. For one process there is one of ours; for several, bring an object over a shared
 * store. Values are text that means nothing to you; keys are 43 characters of base64url.
 */
export interface ResponseCache {
  /**
   * In one atomic step: writes the value if there is none under the key and answers null, or else answers what is there. Of
   * any number of callers one gets null. In Redis 7: `SET key value EX ttlSeconds NX GET`.
   */
  claim(key: string, value: string, ttlSeconds: number): Promise<string | null>
  /** Replaces what is there. */
  set(key: string, value: string, ttlSeconds: number): Promise<void>
  delete(key: string): Promise<void>
}

const deadlineMs = 2_000

/**
 * What the cache answers; one that fails or is late is a 503, since nobody can tell any more whether the request ran before.
 * `tooLate` hears what a late one says after all.
 */
export async function asked<T>(question: () => Promise<T>, tooLate: (answer: T) => unknown): Promise<T> {
  let isLate = false
  const answer = (async () => question())()
  answer.then((said) => isLate && tooLate(said)).catch(() => undefined) // what fails is told below
  try {
    return await inTime(answer, deadlineMs, () => {
      isLate = true
      return new Error('The cache of answers is late.')
    })
  } catch (error) {
    throw new ServiceUnavailableError({ cause: error })
  }
}
