import { randomInt } from 'node:crypto'
import { ServiceUnavailableError } from './errors'
import { inTime } from './in-time'
import { describeError, type Logger } from './logger'

/**
 * Work that starts a random while after the answer has been sent. Neither the answer nor the next request on the same connection
 * tells how much there was to do.
 */
export interface Background {
  /**
   * Starts the work; a failure is logged under the given name.
   * @throws ServiceUnavailableError when too much is under way already
   */
  run(name: string, work: () => Promise<unknown>): void
  /** The same for what must not fail an operation that is done already: false, logged and not started, when there is no room. */
  runIfRoom(name: string, work: () => Promise<unknown>): boolean
  /** Waits no more: what has not begun begins now, and from now on everything begins at once. */
  hurry(): void
  /** Null: nothing is under way; else resolves when all of it has ended. */
  ended(): Promise<unknown> | null
}

/** A hook or a database that never answers gives its place back after this long; what it still does is nobody's any more. */
const longestMs = 40_000

/** Far more than budgets let through; what it bounds is memory, should the database or a hook stop answering. */
const mostAtOnce = 1_000

/** How long work waits before it begins, by chance: from the first to the second. */
export const startDelayMs = [200, 2_000] as const

/** @param isDelayed false: work begins at once, as tests want it */
export function createBackground(logger: Logger, { isDelayed }: { isDelayed: boolean }): Background {
  const underWay = new Set<Promise<void>>()
  const waiting = new Set<() => void>()
  let isHurried = !isDelayed

  /** Cut short by `hurry`. The timer keeps no process alive: `drain` is there for a process that stops. */
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
    // A promise chain of its own: a throw before the first await is a failure of the work, not of the request.
    const task = Promise.resolve(wait())
      .then(() => inTime(Promise.resolve().then(work), longestMs, () => new Error('The work after the answer is late.')))
      .then(() => undefined)
      .catch((error: unknown) => logger.error({ work: name, error: describeError(error) }, 'doorward: work after the answer failed'))
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
      if (!isStarted) logger.error({ work: name }, 'doorward: too much work after answers is under way; this was left out')
      return isStarted
    },
    hurry() {
      isHurried = true
      for (const begin of waiting) begin()
    },
    ended: () => (underWay.size === 0 ? null : Promise.all(underWay)),
  }
}
