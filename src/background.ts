import { ServiceUnavailableError } from './errors'
import { inTime } from './in-time'
import { describeError, type Logger } from './logger'

/** Work that goes on after the answer has been sent, so that its length tells the asker nothing. */
export interface Background {
  /**
   * Starts the work; a failure is logged under the given name.
   * @throws ServiceUnavailableError when too much is under way already
   */
  run(name: string, work: () => Promise<unknown>): void
  /** The same for what must not fail an operation that is done already: false, logged and not started, when there is no room. */
  runIfRoom(name: string, work: () => Promise<unknown>): boolean
}

/** A hook or a database that never answers gives its place back after this long; what it still does is nobody's any more. */
const longestMs = 40_000

/** Far more than budgets let through; what it bounds is memory, should the database or a hook stop answering. */
const mostAtOnce = 1_000

export function createBackground(logger: Logger): Background {
  let underWay = 0

  function start(name: string, work: () => Promise<unknown>): boolean {
    if (underWay >= mostAtOnce) return false
    underWay++
    // A promise chain of its own: a throw before the first await is a failure of the work, not of the request.
    inTime(Promise.resolve().then(work), longestMs, () => new Error('The work after the answer is late.'))
      .catch((error: unknown) => logger.error({ work: name, error: describeError(error) }, 'doorward: work after the answer failed'))
      .finally(() => {
        underWay--
      })
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
  }
}
