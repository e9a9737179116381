import { ServiceUnavailableError } from '../errors'

/** Runs the work now, or after what came before it. `signal`: work that still waits when it is aborted never runs. */
export type BoundedQueue = <T>(work: () => Promise<T>, signal?: AbortSignal) => Promise<T>

/**
 * At most `concurrency` at once and `queue` waiting, first come first served. Hashing shares four threads with the file
 * system and DNS: without a bound, a burst of logins stops the whole process.
 *
 * @throws ServiceUnavailableError at once when the queue is full, and when the work was aborted while it waited.
 */
export function createBoundedQueue({ concurrency, queue }: { concurrency: number; queue: number }): BoundedQueue {
  const waiting: (() => void)[] = []
  let running = 0

  async function enter(signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted) throw busy()
    if (running < concurrency) {
      running++
      return
    }
    if (waiting.length >= queue) throw busy()
    await new Promise<void>((resolve, reject) => {
      const begin = () => {
        signal?.removeEventListener('abort', giveUp)
        resolve()
      }
      const giveUp = () => {
        waiting.splice(waiting.indexOf(begin), 1)
        reject(busy())
      }
      waiting.push(begin)
      signal?.addEventListener('abort', giveUp, { once: true })
    })
  }

  /** The place goes straight to the next in line, so that nobody slips in between. */
  function leave(): void {
    const next = waiting.shift()
    if (next) next()
    else running--
  }

  return async (work, signal) => {
    await enter(signal)
    try {
      return await work()
    } finally {
      leave()
    }
  }
}

function busy(): ServiceUnavailableError {
  return new ServiceUnavailableError({ details: { retry_after_seconds: 1 } })
}
