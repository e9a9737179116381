import { consoleLogger, describeError, type Logger } from '../logger'
import type { CounterStore } from './counter-store'
import { isInProcess, localCounters } from './memory-counters'

/** How long a shared store may take for one answer: with what happens around it, the caller has one within 500 ms. */
export const defaultDeadlineMs = 400

/** After a failure the shared store is left alone for this long, so that an outage does not cost every request the deadline. */
export const restMs = 1_000

interface GuardOptions {
  logger?: Logger
  /** In milliseconds. */
  now?: () => number
  deadlineMs?: number
}

/** Takes one unit in the shared store alone. Null: the store does not answer. */
export type AskShared = (...given: Parameters<CounterStore['increment']>) => Promise<Answer | null>

const guarded = new WeakMap<CounterStore, Guard>()

interface Guard extends CounterStore {
  readonly incrementThere: AskShared
}

/**
 * The same store with a local one behind it: when the shared one throws, is late, or answers nonsense, this process
 * counts for itself, never without limit. Asking twice for one store gives the same guard.
 *
 * A failing store rests; then one call tries it, while the others still count here, so that a client which queues what it
 * cannot send (both Redis clients do) is given one command a second and not all of them.
 *
 * What was counted here stays counted until its window ends: as long as one is open here, both count and the larger count
 * is believed. An outage gives a key this process's budget once in a window, however often the store comes and goes.
 */
export function withLocalFallback(shared: CounterStore, options: GuardOptions = {}): CounterStore {
  if (isInProcess(shared)) return shared
  const known = guarded.get(shared)
  if (known) return known
  const guard = createGuard(shared, options)
  guarded.set(shared, guard)
  guarded.set(guard, guard)
  return guard
}

/**
 * For what no two processes may both decide: the shared store's own answer, without a local one behind it.
 * @returns null for a store of this process, or one that `withLocalFallback` was never asked for
 */
export function askShared(counters: CounterStore): AskShared | null {
  return guarded.get(counters)?.incrementThere ?? null
}

function createGuard(shared: CounterStore, options: GuardOptions): Guard {
  const { logger = consoleLogger, now = () => performance.now(), deadlineMs = defaultDeadlineMs } = options
  const local = localCounters({ now })
  /** Keys the shared store has seen at their limit: asked only while it does not answer, since others may have given units back. */
  const spentThere = localCounters({ now })
  const ask = askWhileUp({ logger, now, deadlineMs })

  /** From here on the key is counted in this process too, from where it stood when the shared store was last heard. */
  async function adoptSpent(key: string, windowSeconds: number, limit = Number.POSITIVE_INFINITY): Promise<void> {
    if (!spentThere.holds(key)) return
    local.hold(key, windowSeconds, { ...(await spentThere.increment(key, windowSeconds, limit)), limit })
  }

  const incrementThere: AskShared = (...given) => ask(async () => plausible(await shared.increment(...given)), { isCount: true })

  return {
    incrementThere,
    async increment(key, windowSeconds, limit) {
      const there = await incrementThere(key, windowSeconds, limit)
      // Otherwise an attacker who can slow the shared store down would get a new rate limit.
      if (there && limit !== undefined && there.count >= limit) spentThere.hold(key, windowSeconds, { ...there, limit })
      if (there && !local.holds(key)) return there
      if (!there && !local.holds(key)) await adoptSpent(key, windowSeconds, limit)
      const here = await local.increment(key, windowSeconds, limit)
      return there && there.count >= here.count ? there : here
    },
    // Either may have counted the unit, or both. At the edge of an outage one that did not may lose a unit too many: one per
    // caller who did well, which is no way to guess.
    async decrement(key) {
      await Promise.all([ask(() => shared.decrement(key)), local.decrement(key)])
    },
    async reset(key) {
      await Promise.all([ask(() => shared.reset(key)), local.reset(key), spentThere.reset(key)])
    },
  }
}

type Ask = <T>(question: () => Promise<T>, kind?: { isCount: boolean }) => Promise<T | null>

/**
 * Asks the shared store, if it is believed to be up or due to be tried; null: it was not asked, failed, or was late.
 * Only a count shows that it is up again: a Redis that is out of memory still deletes, and refuses the next count.
 */
function askWhileUp({ logger, now, deadlineMs }: Required<GuardOptions>): Ask {
  let isDown = false
  let isBeingTried = false
  let restsUntil = Number.NEGATIVE_INFINITY

  function mayBeAsked(): boolean {
    const rest = restsUntil - now()
    const isResting = rest > 0 && rest <= restMs // a clock that was set back does not prolong it
    return !isDown || !(isBeingTried || isResting)
  }

  return async (question, { isCount } = { isCount: false }) => {
    if (!mayBeAsked()) return null
    const isTrial = isDown
    if (isTrial) isBeingTried = true
    try {
      const answer = await inTime(question(), deadlineMs)
      if (isCount) isDown = false
      return answer
    } catch (error) {
      if (!isDown)
        logger.error({ error: describeError(error) }, 'doorward: the counter store failed; counting in this process until it is back')
      isDown = true
      restsUntil = now() + restMs
      return null
    } finally {
      if (isTrial) isBeingTried = false
    }
  }
}

type Answer = Awaited<ReturnType<CounterStore['increment']>>

/** A count that is text or NaN would compare as below every limit. */
function plausible(answer: Answer): Answer {
  if (Number.isSafeInteger(answer.count) && answer.count >= 1 && Number.isFinite(answer.resetSeconds)) return answer
  throw new TypeError('The counter store must answer { count, resetSeconds } as numbers.')
}

/** Late is what has not been answered once the loop has looked at its sockets again: a busy process is no outage. */
async function inTime<T>(work: Promise<T>, deadlineMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => setImmediate(reject, new Error('The counter store is late.')), deadlineMs)
  })
  try {
    return await Promise.race([work, late]) // which also takes in a rejection that comes after the deadline
  } finally {
    clearTimeout(timer)
  }
}
