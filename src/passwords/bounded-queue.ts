import { ServiceUnavailableError } from '../errors'

/** Runs the work now, or after what came before it. */
export type BoundedQueue = <T>(work: () => Promise<T>) => Promise<T>

/**
 * At most `concurrency` at once and `queue` waiting, first come first served. Hashing shares four threads with the file
 * system and DNS: without a bound, a burst of logins stops the whole process.
 *
 * @throws ServiceUnavailableError at once when the queue is full.
 */
export function createBoundedQueue({ concurrency, queue }: { concurrency: number; queue: number }): BoundedQueue {
  const waiting: (() => void)[] = []
  let running = 0

  async function enter(): Promise<void> {
    if (running < concurrency) {
      running++
      return
    }
    if (waiting.length >= queue) throw new ServiceUnavailableError({ details: { retry_after_seconds: 1 } })
    await new Promise<void>((resolve) => waiting.push(resolve))
  }

  /** The place goes straight to the next in line, so that nobody slips in between. */
  function leave(): void {
    const next = waiting.shift()
    if (next) next()
    else running--
  }

  return async (work) => {
    await enter()
    try {
      return await work()
    } finally {
      leave()
    }
  }
}
