import { ConfigurationError } from '../core/errors'
import type { CounterStore } from './counter-store'
import { createOverflowBuckets } from './overflow-buckets'
import { createHeldWindows, type Window } from './window-cache'

/**
 * Creates counters in the memory of this process, with a limited size. If the store has `maxKeys` keys, a new key replaces a key with the
 * fewest attempts. Keys at their limit are never dropped. A flood of other keys therefore gives an attacker no new attempts.
 *
 * If a key begins while the store is full, the key also counts in one of 65,536 buckets. A bucket has 20 times the limit of a key. The new
 * key therefore has a limit even if the store drops the key at once. To lock all other clients out, a flood would have to fill nearly all
 * buckets. Later calls drop expired keys. The store has no timer.
 *
 * `now` returns milliseconds and should not jump. The default is the monotonic clock.
 *
 * @throws ConfigurationError when `maxKeys` is not a whole number of at least 1
 */
export function memoryCounters(options: { maxKeys?: number; now?: () => number } = {}): CounterStore {
  return localCounters(options)
}

/** Counters in memory with methods to read and set keys. */
export interface LocalCounters extends CounterStore {
  /** Returns true while a window of the key is open. */
  holds(key: string): boolean
  /** Stores the window of another store. From then on, this store counts the key too. */
  hold(key: string, windowSeconds: number, window: { count: number; resetSeconds: number; limit: number }): void
}

/** Creates counters in memory, for the wrapper of a shared store. */
export function localCounters(options: { maxKeys?: number; now?: () => number } = {}): LocalCounters {
  const { maxKeys = 100_000, now: clock = () => performance.now() } = options
  if (!Number.isSafeInteger(maxKeys) || maxKeys < 1) {
    throw new ConfigurationError('memoryCounters: maxKeys must be a whole number of at least 1.')
  }
  // Rounds the time down to whole milliseconds. With a fraction, `resetSeconds`, which is rounded up, could be one second too long.
  const now = () => Math.floor(clock())
  const held = createHeldWindows()
  const overflow = createOverflowBuckets()

  function find(key: string, time: number): Window | undefined {
    const window = held.find(key)
    return window && window.endsAt > time ? window : undefined
  }

  /** Opens a window. Returns null if there are `maxKeys` keys and all of them are at their limit. */
  function open(key: string, seconds: number, time: number): Window | null {
    held.drop(key) // the key may have an expired window
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

  const presented = ({ count, endsAt }: { count: number; endsAt: number }, time: number) => ({
    count,
    resetSeconds: Math.ceil((endsAt - time) / 1000),
  })

  const store: LocalCounters = {
    async increment(key, windowSeconds, limit = Number.POSITIVE_INFINITY) {
      const time = now()
      held.sweep(time)
      const known = find(key, time)
      if (known) return presented(countIn(known, limit), time)
      const isFull = held.size() >= maxKeys
      const opened = open(key, windowSeconds, time)
      const own = opened && countIn(opened, limit)
      if (own && !isFull) return presented(own, time)
      // If the other keys have more attempts, this new key is the next key to be dropped. A bucket must therefore count the attempts of the
      // new key too.
      const shared = overflow.increment(key, windowSeconds, limit, time)
      return presented(own && own.count >= shared.count ? own : shared, time)
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
      // The window goes to the end of the list of its length. Because the window started in another store, it can end before the windows
      // that are earlier in the list. In that case the window is dropped a little late.
      held.hold({ key, seconds: windowSeconds, endsAt: time + resetSeconds * 1000, count, limit })
    },

    holds: (key) => find(key, now()) !== undefined,
  }
  inProcess.add(store)
  return store
}

const inProcess = new WeakSet<CounterStore>()

/** Returns true for a store of this module. Such a store never fails and always answers at once. */
export function isInProcess(store: CounterStore): boolean {
  return inProcess.has(store)
}
