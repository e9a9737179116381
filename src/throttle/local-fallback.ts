import { consoleLogger, describeError, type Logger } from '../logger'
import type { CounterStore } from './counter-store'
import { isInProcess, memoryCounters } from './memory-counters'

/** How long a shared store may take for one answer. */
const deadlineMs = 1_000

/** After a failure the shared store is left alone for this long, so that an outage does not cost every request the deadline. */
const restMs = 1_000

const guarded = new WeakMap<CounterStore, CounterStore>()

/**
 * The same store with a local one behind it: when the shared one throws, is late, or answers nonsense, this process
 * counts for itself, never without limit. Asking twice for one store gives the same guard.
 */
export function withLocalFallback(shared: CounterStore, options: { logger?: Logger; now?: () => number } = {}): CounterStore {
  if (isInProcess(shared)) return shared
  const known = guarded.get(shared)
  if (known) return known
  const guard = createGuard(shared, options)
  guarded.set(shared, guard)
  guarded.set(guard, guard)
  return guard
}

function createGuard(shared: CounterStore, options: { logger?: Logger; now?: () => number }): CounterStore {
  const { logger = consoleLogger, now = () => performance.now() } = options
  const local = memoryCounters({ now })
  let restsUntil = Number.NEGATIVE_INFINITY
  let isDown = false

  async function ask<T>(question: () => Promise<T>): Promise<T | null> {
    const rest = restsUntil - now()
    if (rest > 0 && rest <= restMs) return null // a clock that was set back does not prolong it
    try {
      const answer = await inTime(question())
      isDown = false
      return answer
    } catch (error) {
      if (!isDown)
        logger.error({ error: describeError(error) }, 'doorward: the counter store failed; counting in this process until it is back')
      isDown = true
      restsUntil = now() + restMs
      return null
    }
  }

  return {
    async increment(key, windowSeconds, limit) {
      const answer = await ask(async () => plausible(await shared.increment(key, windowSeconds, limit)))
      return answer ?? local.increment(key, windowSeconds, limit)
    },
    async decrement(key) {
      await Promise.all([ask(() => shared.decrement(key)), local.decrement(key)])
    },
    async reset(key) {
      await Promise.all([ask(() => shared.reset(key)), local.reset(key)])
    },
  }
}

type Answer = Awaited<ReturnType<CounterStore['increment']>>

/** A count that is text or NaN would compare as below every limit. */
function plausible(answer: Answer): Answer {
  if (Number.isSafeInteger(answer.count) && answer.count >= 1 && Number.isFinite(answer.resetSeconds)) return answer
  throw new TypeError('The counter store must answer { count, resetSeconds } as numbers.')
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('The counter store is late.')), deadlineMs)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
