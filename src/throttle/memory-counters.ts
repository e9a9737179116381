import { ConfigurationError } from '../errors'
import type { CounterStore } from './counter-store'
import { createHeldWindows, type Window } from './held-windows'
import { createOverflowBuckets } from './overflow-buckets'

/**
 * Creates counters in the memory of this process, of limited size. With `maxKeys` keys, the key with the fewest attempts is dropped for a new
 * one. Keys at their limit are never dropped, so that a flood of other keys allows no new attempts. A key that begins while `maxKeys` are held
 * also counts in one of 65,536 buckets of 20 times its limit. So it has a limit even if it is dropped at once, and a flood does not lock
 * everyone else out. Expired keys are dropped by later calls; there is no timer.
 *
 * `now` is in milliseconds and should not jump; the default is the monotonic clock.
 *
 * @throws ConfigurationError when `maxKeys` is not a whole number of at least 1.
 */
export function memoryCounters(options: { maxKeys?: number; now?: () => number } = {}): CounterStore {
  return localCounters(options)
}

/** Counters in memory whose keys can be read and set. */
export interface LocalCounters extends CounterStore {
  /** Returns true while a window of the key is open. */
  holds(key: string): boolean
  /** Stores a window of another store, which from now on is also counted here. */
  hold(key: string, windowSeconds: number, window: { count: number; resetSeconds: number; limit: number }): void
}

/** Creates counters in memory, for the wrapper of a shared store. */
export function localCounters(options: { maxKeys?: number; now?: () => number } = {}): LocalCounters {
  const { maxKeys = 100_000, now: clock = () => performance.now() } = options
  if (!Number.isSafeInteger(maxKeys) || maxKeys < 1) {
    throw new ConfigurationError('memoryCounters: maxKeys must be a whole number of at least 1.')
  }
  // Whole milliseconds, because a fraction would add a second to the rest of a window.
  const now = () => Math.floor(clock())
  const held = createHeldWindows()
  const overflow = createOverflowBuckets()

  function find(key: string, time: number): Window | undefined {
    const window = held.find(key)
    return window && window.endsAt > time ? window : undefined
  }

  /** Opens a window. Null: there are `maxKeys` keys, all of them at their limit. */
  function open(key: string, seconds: number, time: number): Window | null {
    held.drop(key) // an expired window of the same key
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

  const shown = ({ count, endsAt }: { count: number; endsAt: number }, time: number) => ({
    count,
    resetSeconds: Math.ceil((endsAt - time) / 1000),
  })

  const store: LocalCounters = {
    async increment(key, windowSeconds, limit = Number.POSITIVE_INFINITY) {
      const time = now()
      held.sweep(time)
      const known = find(key, time)
      if (known) return shown(countIn(known, limit), time)
      const isFull = held.size() >= maxKeys
      const opened = open(key, windowSeconds, time)
      const own = opened && countIn(opened, limit)
      if (own && !isFull) return shown(own, time)
      // Among keys that are used more than once, a new one is the next to make room: its units have to stay somewhere.
      const shared = overflow.increment(key, windowSeconds, limit, time)
      return shown(own && own.count >= shared.count ? own : shared, time)
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
      // It is listed among windows of its length, although it started elsewhere and may end before earlier ones. So it is swept a little
      // late.
      held.hold({ key, seconds: windowSeconds, endsAt: time + resetSeconds * 1000, count, limit })
    },

    holds: (key) => find(key, now()) !== undefined,
  }
  inProcess.add(store)
  return store
}

const inProcess = new WeakSet<CounterStore>()

/** Returns true for a store made here, which can neither fail nor be late. */
export function isInProcess(store: CounterStore): boolean {
  return inProcess.has(store)
}
