import { ConfigurationError } from '../errors'
import type { CounterStore } from './counter-store'
import { createHeldWindows, type Window } from './held-windows'
import { createOverflowBuckets } from './overflow-buckets'

/**
 * Counters of this process, bounded. When `maxKeys` are held, the one with the fewest units makes room. Keys at their limit never do,
 * so that a flood of other keys buys no fresh attempts. When there are only such keys, new ones count in 65,536 buckets of 20 times
 * their limit, so that a flood does not shut everybody else out either. Expired keys go as calls come in; there is no timer.
 *
 * `now` is in milliseconds and should not jump; the default is the monotonic clock.
 *
 * @throws ConfigurationError when `maxKeys` is not a whole number of at least 1.
 */
export function memoryCounters(options: { maxKeys?: number; now?: () => number } = {}): CounterStore {
  return localCounters(options)
}

/** Counters in memory that can be asked what they hold. */
export interface LocalCounters extends CounterStore {
  /** True while a window of the key is open here. */
  holds(key: string): boolean
  /** A window as another store has it, from now on also counted here. */
  hold(key: string, windowSeconds: number, window: { count: number; resetSeconds: number; limit: number }): void
}

/** `memoryCounters`, as the guard of a shared store needs them. */
export function localCounters(options: { maxKeys?: number; now?: () => number } = {}): LocalCounters {
  const { maxKeys = 100_000, now: clock = () => performance.now() } = options
  if (!Number.isSafeInteger(maxKeys) || maxKeys < 1) {
    throw new ConfigurationError('memoryCounters: maxKeys must be a whole number of at least 1.')
  }
  // Whole milliseconds: a fraction would add a second to what is left of a window.
  const now = () => Math.floor(clock())
  const held = createHeldWindows()
  const overflow = createOverflowBuckets()

  function find(key: string, time: number): Window | undefined {
    const window = held.find(key)
    return window && window.endsAt > time ? window : undefined
  }

  /** Null: every place is taken by a key at its limit. */
  function open(key: string, seconds: number, time: number): Window | null {
    held.drop(key) // its expired predecessor
    if (held.size() >= maxKeys && !held.makeRoom()) return null
    const window = { key, seconds, endsAt: time + seconds * 1000, count: 0, limit: Number.POSITIVE_INFINITY }
    held.hold(window)
    return window
  }

  function countIn(window: Window, limit: number): Window {
    window.count++
    window.limit = limit
    held.regrade(window)
    return window
  }

  const store: LocalCounters = {
    async increment(key, windowSeconds, limit = Number.POSITIVE_INFINITY) {
      const time = now()
      held.sweep(time)
      const window = find(key, time) ?? open(key, windowSeconds, time)
      const { count, endsAt } = window ? countIn(window, limit) : overflow.increment(key, windowSeconds, limit, time)
      return { count, resetSeconds: Math.ceil((endsAt - time) / 1000) }
    },

    async decrement(key) {
      const window = find(key, now())
      if (!window || window.count === 0) return
      window.count--
      held.regrade(window)
    },

    async reset(key) {
      held.drop(key)
    },

    hold(key, windowSeconds, { count, resetSeconds, limit }) {
      const time = now()
      held.sweep(time)
      held.drop(key)
      if (held.size() >= maxKeys && !held.makeRoom()) return
      // Among those of its length, though it began elsewhere and ends before some that came earlier: it is swept a little late.
      held.hold({ key, seconds: windowSeconds, endsAt: time + resetSeconds * 1000, count, limit })
    },

    holds: (key) => find(key, now()) !== undefined,
  }
  inProcess.add(store)
  return store
}

const inProcess = new WeakSet<CounterStore>()

/** True for a store made here: it can be neither down nor late. */
export function isInProcess(store: CounterStore): boolean {
  return inProcess.has(store)
}
