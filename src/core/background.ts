import { randomInt } from 'node:crypto'
import { ServiceUnavailableError } from './errors'
import { describeError, type Logger, logCounted } from './logger'
import { withTimeout } from './with-timeout'

/** No response waits for this work. It starts after a random delay, so no response time reveals the amount of work. */
export interface Background {
  /** Logs a failure under `name`. @throws ServiceUnavailableError when too much work is running */
  run(name: string, work: () => Promise<unknown>): void
  /** Never throws. Use it after an operation that has succeeded. If too much work is running, logs that and returns false. */
  runIfRoom(name: string, work: () => Promise<unknown>): boolean
  /** Starts all waiting work now, and resolves when it and the running work have ended. Later work is not affected. */
  finish(): Promise<unknown>
}

/** In milliseconds. After that time the work no longer counts against `mostAtOnce`, and its result is ignored. */
const longestMs = 40_000

/** The rate limits allow far less. This bounds the memory if the database or a hook stops answering. */
const mostAtOnce = 1_000

/** The shortest and the longest delay, in milliseconds. The actual delay is random. */
export const startDelayMs = [200, 2_000] as const

/** @param isDelayed false: work starts at once, for tests */
export function createBackground(logger: Logger, { isDelayed }: { isDelayed: boolean }): Background {
  const underWay = new Set<Promise<void>>()
  const waiting = new Set<() => void>()

  /** The timer does not keep the process alive. A process that stops calls `drain`, which starts the waiting work at once. */
  function wait(): Promise<void> | undefined {
    if (!isDelayed) return undefined
    return new Promise((resolve) => {
      const timer = setTimeout(begin, randomInt(startDelayMs[0], startDelayMs[1] + 1))
      timer.unref()
      waiting.add(begin)
      function begin(): void {
        clearTimeout(timer)
        waiting.delete(begin)
        resolve()
      }
    })
  }

  function start(name: string, work: () => Promise<unknown>): boolean {
    if (underWay.size >= mostAtOnce) return false
    // Inside the promise chain, so that the request does not fail if `work` throws before its first await.
    const task = Promise.resolve(wait())
      .then(() => withTimeout(Promise.resolve().then(work), longestMs, () => new Error('The work after the answer is late.')))
      .then(() => undefined)
      .catch((error: unknown) => logger.error({ work: name, error: describeError(error) }, 'doorward: work after the response failed'))
      .finally(() => underWay.delete(task))
    underWay.add(task)
    return true
  }

  return {
    run(name, work) {
      if (!start(name, work)) throw new ServiceUnavailableError()
    },
    runIfRoom(name, work) {
      const isStarted = start(name, work)
      if (!isStarted)
        logCounted(logger, {
          level: 'error',
          kind: `skipped ${name}`,
          fields: { work: name },
          message: 'doorward: too much work after responses is running, so this work was skipped',
        })
      return isStarted
    },
    finish() {
      for (const begin of waiting) begin()
      return Promise.all(underWay)
    },
  }
}
