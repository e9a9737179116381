import { ServiceUnavailableError } from '../core/errors'
import { consoleLogger, describeError, type Logger, safely } from '../core/logger'
import { isInProcess, localCounters } from './memory-counters'
import type { CounterStore } from './rate-limit'

/** The time limit for a call of the shared store, in milliseconds. With this limit, the caller has a result within 500 ms. */
export const defaultDeadlineMs = 400

/**
 * After a failure the shared store is not called for this many milliseconds. Otherwise every request during an outage would wait for the
 * time limit.
 */
export const restMs = 1_000

interface GuardOptions {
  logger?: Logger
  /** Returns the time in milliseconds. */
  now?: () => number
  deadlineMs?: number
}

/** Counts an attempt in the shared store only. Returns null if the store was not called, failed, or was late. */
type AskShared = (...given: Parameters<CounterStore['increment']>) => Promise<Answer | null>

const guarded = new WeakMap<CounterStore, Guard>()

interface Guard extends CounterStore {
  readonly incrementThere: AskShared
}

/**
 * Wraps a shared store with a local fallback. If the shared store throws, is late or returns an invalid result, this process counts by
 * itself. The rate limit therefore always applies. A second call with the same store returns the same wrapper.
 *
 * After a failure the wrapper does not call the store for a while. Then one call tries the store, and the other calls still count locally.
 * Both Redis clients queue unsent commands. The pause limits that queue to one command a second.
 *
 * Attempts that were counted locally stay counted until their window ends. While a local window is open, both stores count, and the larger
 * count applies. During an outage, each key therefore gets this process's limit only once per window. The store may fail and recover many
 * times without changing that.
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
 * Returns a function that counts in the shared store without its local fallback. Use the function if all processes together must decide,
 * for example which caller may use a single-use value.
 * @returns null for a store in memory, and for a store that was never passed to `withLocalFallback`
 */
export function askShared(counters: CounterStore): AskShared | null {
  return guarded.get(counters)?.incrementThere ?? null
}

function createGuard(shared: CounterStore, options: GuardOptions): Guard {
  const { now = () => performance.now(), deadlineMs = defaultDeadlineMs } = options
  const local = localCounters({ now })
  /**
   * Keys that reached their limit in the shared store. The wrapper uses these keys only while the shared store fails. The keys can be out
   * of date, because other processes may have taken attempts back.
   */
  const usedThere = localCounters({ now })
  const logger = safely(options.logger ?? consoleLogger)
  const ask = askWhileUp({ logger, now, deadlineMs })

  /**
   * If the key had reached its limit in the shared store, begins to count the key in this process too. The count starts above the limit.
   */
  async function adoptUsed(key: string, windowSeconds: number, limit = Number.POSITIVE_INFINITY): Promise<void> {
    if (!usedThere.holds(key)) return
    local.hold(key, windowSeconds, { ...(await usedThere.increment(key, windowSeconds, limit)), limit })
  }

  const incrementThere: AskShared = (...given) => ask(async () => plausible(await shared.increment(...given)), { isCount: true })

  return {
    incrementThere,
    async increment(key, windowSeconds, limit) {
      const there = await incrementThere(key, windowSeconds, limit)
      // Without this record, this process would count from zero when the shared store fails. An attacker who can slow the shared store down
      // would then get new attempts.
      if (there && limit !== undefined && there.count >= limit) usedThere.hold(key, windowSeconds, { ...there, limit })
      if (there && !local.holds(key)) return there
      if (!there && !local.holds(key)) await adoptUsed(key, windowSeconds, limit)
      const here = await local.increment(key, windowSeconds, limit)
      return there && there.count >= here.count ? there : here
    },
    // The attempt was counted in one store or in both stores, and is taken back from both. Around an outage, a store can therefore take
    // back an attempt that only the other store counted. The error stays small, because a caller takes back at most one attempt: its own.
    async decrement(key) {
      await Promise.all([ask(() => shared.decrement(key)), local.decrement(key)])
    },
    async reset(key) {
      await Promise.all([ask(() => shared.reset(key)), local.reset(key), usedThere.reset(key)])
    },
  }
}

type Ask = <T>(question: () => Promise<T>, kind?: { isCount: boolean }) => Promise<T | null>

/**
 * Calls the shared store if it is up, or if a new try is due. Returns null if the store was not called, failed, or was late. Only a
 * successful count shows that the store is up again, because a Redis without free memory can delete but cannot count.
 */
function askWhileUp({ logger, now, deadlineMs }: Required<GuardOptions>): Ask {
  let isDown = false
  let isBeingTried = false
  let restsUntil = Number.NEGATIVE_INFINITY

  function mayBeAsked(): boolean {
    const rest = restsUntil - now()
    const isResting = rest > 0 && rest <= restMs // a clock that was set back does not make the pause longer
    return !isDown || !(isBeingTried || isResting)
  }

  return async (question, { isCount } = { isCount: false }) => {
    if (!mayBeAsked()) return null
    const isTrial = isDown
    if (isTrial) isBeingTried = true
    try {
      const answer = await withTimeout(question(), deadlineMs)
      if (isCount) isDown = false
      return answer
    } catch (error) {
      if (!isDown)
        logger.error(
          { error: describeError(error) },
          'doorward: the counter store failed. Until it works again, this process counts by itself',
        )
      isDown = true
      restsUntil = now() + restMs
      return null
    } finally {
      if (isTrial) isBeingTried = false
    }
  }
}

type Answer = Awaited<ReturnType<CounterStore['increment']>>

/** Returns a valid result, and throws for an invalid result. An invalid count such as NaN would never be greater than a limit. */
function plausible(answer: Answer): Answer {
  if (Number.isSafeInteger(answer.count) && answer.count >= 1 && Number.isFinite(answer.resetSeconds)) return answer
  throw new TypeError('The counter store must return { count, resetSeconds } as numbers.')
}

/**
 * Rejects after the deadline. The event loop first reads the sockets once more, because in a busy process the response may have arrived
 * already.
 */
async function withTimeout<T>(work: Promise<T>, deadlineMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => setImmediate(reject, new Error('The counter store is late.')), deadlineMs)
  })
  try {
    return await Promise.race([work, late]) // the race also handles a rejection after the deadline
  } finally {
    clearTimeout(timer)
  }
}

/** The attempts of a key that are in progress in this process, and the requests that wait for those attempts. */
interface Key {
  /** The number of attempts that are reading the counters now. */
  asking: number
  /** The number of attempts that were counted and are not finished. */
  granted: number
  readonly waiting: (() => void)[]
  /**
   * Resolves when all earlier results are written. The next result waits for this promise, because results are written one after another.
   */
  ends: Promise<unknown>
}

const mostWaitingForKey = 20
const mostWaiting = 500
const mostWaitMs = 2_000

const keysOf = new WeakMap<CounterStore, Map<string, Key>>()
let waitingInAll = 0

/** The time when a request stops waiting. All keys of the request share this time. Null before the first wait. */
export interface Patience {
  endsAt: number | null
}

/** The attempts in progress for a key. The key is in memory only while an attempt runs or waits. */
interface InFlight {
  /** Begins an attempt. Call the method before the counters are read. Call `grant` or `refuse` afterwards. */
  ask(): void
  /**
   * Records that the attempt was counted. With `hasWaited`, wakes the next waiting attempt, because the limit may also allow that attempt.
   */
  grant(hasWaited: boolean): void
  /**
   * Records that the limit rejected the attempt.
   * @returns true if other attempts of this process are in progress; when they end, the limit may allow this attempt
   */
  refuse(): boolean
  /**
   * Resolves when an attempt of the key ends.
   * @throws ServiceUnavailableError after two seconds, or if too many requests wait
   */
  wait(patience: Patience): Promise<void>
  /** Writes the result of a granted attempt. `write` gets the number of other granted attempts. */
  end(write: (others: number) => Promise<void>): Promise<void>
}

export function inFlight(counters: CounterStore, name: string): InFlight {
  const keys = keysOf.get(counters) ?? new Map<string, Key>()
  keysOf.set(counters, keys)
  const find = () => keys.get(name)
  const key = (): Key => {
    const known = find() ?? { asking: 0, granted: 0, waiting: [], ends: Promise.resolve() }
    keys.set(name, known)
    return known
  }
  const forgetIdle = () => {
    const { asking, granted, waiting } = key()
    if (asking + granted + waiting.length === 0) keys.delete(name)
  }
  const wakeNext = () => key().waiting.shift()?.()

  return {
    ask() {
      key().asking++
    },
    grant(hasWaited) {
      key().asking--
      key().granted++
      if (hasWaited) wakeNext()
    },
    refuse() {
      const { granted, asking } = key()
      key().asking--
      const hasOthers = granted + asking > 1
      if (!hasOthers) wakeNext() // no other attempt would wake the next waiting attempt
      forgetIdle()
      return hasOthers
    },
    async wait(patience) {
      patience.endsAt ??= performance.now() + mostWaitMs
      await waitInLine(key(), patience.endsAt - performance.now()).finally(forgetIdle)
    },
    async end(write) {
      const held = key()
      const ending = held.ends.then(() => write(held.granted - 1))
      held.ends = ending.catch(() => undefined)
      try {
        await ending
      } finally {
        held.granted--
        wakeNext()
        forgetIdle()
      }
    },
  }
}

async function waitInLine({ waiting }: Key, waitMs: number): Promise<void> {
  if (waiting.length >= mostWaitingForKey || waitingInAll >= mostWaiting || waitMs <= 0) throw busy()
  waitingInAll++
  try {
    await new Promise<void>((resolve, reject) => {
      const wake = () => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(wake), 1)
        reject(busy())
      }, waitMs)
      waiting.push(wake)
    })
  } finally {
    waitingInAll--
  }
}

function busy(): ServiceUnavailableError {
  return new ServiceUnavailableError({ details: { retry_after_seconds: 1 } })
}

/** Returns how many keys of these counters are in memory. Used by tests. */
export function keysInFlight(counters: CounterStore): number {
  return keysOf.get(counters)?.size ?? 0
}
