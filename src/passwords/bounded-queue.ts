import { ServiceUnavailableError } from '../errors'

/** Runs the task now, or after the earlier tasks. If `signal` is aborted while the task waits, the task never runs. */
export type BoundedQueue = <T>(work: () => Promise<T>, signal?: AbortSignal) => Promise<T>

/**
 * Creates a queue that runs at most `concurrency` tasks at once, in order. At most `queue` tasks wait. Hashing shares four threads with the
 * file system and DNS. Without a limit, many logins at once would stop the whole process.
 *
 * @throws ServiceUnavailableError when the queue is full, and when the task was aborted while it waited
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

  /** Passes the free slot to the next waiting task, so that no newer task can get the slot first. */
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
