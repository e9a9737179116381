import { randomInt } from 'node:crypto'
import { ServiceUnavailableError } from './errors'
import { inTime } from './in-time'
import { describeError, type Logger } from './logger'

/**
 * Work that starts a random delay after the response was sent. The time of the response does not reveal the amount of work. The time of the
 * next request on the connection also does not reveal the amount.
 */
export interface Background {
  /**
   * Starts the work. A failure is logged under `name`.
   * @throws ServiceUnavailableError when too much work is running
   */
  run(name: string, work: () => Promise<unknown>): void
  /**
   * Like `run`, for work that must not make a finished operation fail. If too much work is running, the method logs that, skips the work
   * and returns false.
   */
  runIfRoom(name: string, work: () => Promise<unknown>): boolean
  /** Starts all waiting work now. From now on, new work starts without a delay. */
  hurry(): void
  /** Returns null if there is no work. Otherwise returns a promise that resolves when all of the current work has ended. */
  ended(): Promise<unknown> | null
}

/**
 * The longest time that work may take, in milliseconds. After that time the work no longer counts against `mostAtOnce`, and its result is
 * ignored.
 */
const longestMs = 40_000

/** Far more than the rate limits allow. The limit bounds the memory if the database or a hook stops answering. */
const mostAtOnce = 1_000

/** The shortest and the longest delay before work starts, in milliseconds. The actual delay is random. */
export const startDelayMs = [200, 2_000] as const

/**
 * Creates a `Background` that logs failures.
 * @param isDelayed false: work starts at once, for tests
 */
export function createBackground(logger: Logger, { isDelayed }: { isDelayed: boolean }): Background {
  const underWay = new Set<Promise<void>>()
  const waiting = new Set<() => void>()
  let isHurried = !isDelayed

  /** Waits a random time. `hurry` ends the wait. The timer does not keep the process alive, because a stopping process calls `drain`. */
  function wait(): Promise<void> | undefined {
    if (isHurried) return undefined
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
    // `work` runs inside the promise chain. If `work` throws before its first await, the request must not fail.
    const task = Promise.resolve(wait())
      .then(() => inTime(Promise.resolve().then(work), longestMs, () => new Error('The work after the answer is late.')))
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
      if (!isStarted) logger.error({ work: name }, 'doorward: too much work after responses is running, so this work was skipped')
      return isStarted
    },
    hurry() {
      isHurried = true
      for (const begin of waiting) begin()
    },
    ended: () => (underWay.size === 0 ? null : Promise.all(underWay)),
  }
}
