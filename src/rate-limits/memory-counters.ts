import { createHmac, randomBytes } from 'node:crypto'
import { ConfigurationError } from '../core/errors'
import type { CounterStore } from './rate-limit'

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
interface LocalCounters extends CounterStore {
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

/** The number of buckets. Two bytes of a hash choose the bucket of a key. */
const buckets = 65_536
const timesTheLimit = 20

/** Counts the keys that begin while the store has `maxKeys` keys. */
interface OverflowBuckets {
  /** Counts an attempt in the key's bucket. `count` is above `limit` if the bucket has more than 20 times the limit. */
  increment(key: string, seconds: number, limit: number, now: number): { count: number; endsAt: number }
}

interface Kind {
  readonly endsAt: number
  readonly counts: Uint32Array
}

/**
 * Creates counters for the keys that begin while the store has `maxKeys` keys. For each limit and window length there are 65,536 buckets,
 * each with 20 times the limit. A hash under a random key of this process chooses the bucket of a key. An attacker therefore cannot know an
 * account's bucket. To lock the account out, the attacker would have to fill nearly all buckets. A set of buckets takes 256 KB, and exists
 * only while it is needed.
 *
 * The buckets never take an attempt back. Otherwise one key could take back the attempt of another key, because many keys share a bucket.
 */
function createOverflowBuckets(): OverflowBuckets {
  const secret = randomBytes(32)
  const kinds = new Map<string, Kind>()

  /** Returns the buckets for a limit and window length. All of these buckets restart at the same time, so one array of counts is enough. */
  function kindOf(name: string, seconds: number, now: number): Kind {
    for (const [known, { endsAt }] of kinds) if (endsAt <= now) kinds.delete(known)
    const kind = kinds.get(name) ?? { endsAt: now + seconds * 1000, counts: new Uint32Array(buckets) }
    kinds.set(name, kind)
    return kind
  }

  return {
    increment(key, seconds, limit, now) {
      const { endsAt, counts } = kindOf(`${limit}/${seconds}`, seconds, now)
      const bucket = createHmac('sha256', secret).update(key).digest().readUInt16BE(0)
      const taken = (counts[bucket] ?? 0) + 1
      counts[bucket] = taken
      return { count: Math.ceil(taken / timesTheLimit), endsAt }
    },
  }
}

/** The attempts of a key within a window. The window begins at `endsAt - seconds * 1000`. */
export interface Window {
  readonly key: string
  readonly seconds: number
  /** In milliseconds of the store's clock. */
  readonly endsAt: number
  count: number
  /** The limit that the last caller compared the count with. */
  limit: number
}

/**
 * The windows in memory, indexed by key, by age and by count. Every method takes constant time. `sweep` takes constant time per window
 * length.
 */
interface HeldWindows {
  size(): number
  find(key: string): Window | undefined
  hold(window: Window): void
  /** Updates the index. Call `regrade` whenever `count` or `limit` of a stored window changed. */
  regrade(window: Window): void
  drop(key: string): void
  /** Drops the oldest of the windows with the fewest attempts. Returns false if every window is at its limit. */
  makeRoom(): boolean
  /** Drops expired windows, a few of each length. */
  sweep(now: number): void
}

interface Held {
  readonly window: Window
  readonly placeByLength: ArrivalPlace<Window>
  placeByLevel: ArrivalPlace<Window>
  level: number
}

/**
 * How many expired windows a sweep drops for each length. The limit spreads the work over several sweeps. Even with this limit, the store
 * drops windows faster than new keys can arrive.
 */
const sweptAtOnce = 32

/** The highest count that `makeRoom` distinguishes. A window with a higher count is treated like a window with this count. */
const topLevel = 64

/** The level of windows that reached their limit. `makeRoom` never drops those windows. */
const used = topLevel + 1

export function createHeldWindows(): HeldWindows {
  const byKey = new Map<string, Held>()
  /** The windows of each length. Windows of one length expire in the order in which they started, so the first of a list expires first. */
  const byLength = new Map<number, ArrivalList<Window>>()
  const byLevel = Array.from({ length: used }, () => createArrivalList<Window>())
  const usedOnes = createArrivalList<Window>()

  const listOfLevel = (level: number) => byLevel[level] ?? usedOnes

  function listOfLength(seconds: number): ArrivalList<Window> {
    const list = byLength.get(seconds) ?? createArrivalList<Window>()
    byLength.set(seconds, list)
    return list
  }

  function drop(key: string): void {
    const held = byKey.get(key)
    if (!held) return
    byKey.delete(key)
    leave(held.placeByLength)
    leave(held.placeByLevel)
  }

  return {
    size: () => byKey.size,
    find: (key) => byKey.get(key)?.window,
    drop,

    hold(window) {
      const level = levelOf(window)
      const placeByLength = listOfLength(window.seconds).append(window)
      byKey.set(window.key, { window, level, placeByLength, placeByLevel: listOfLevel(level).append(window) })
    },

    regrade(window) {
      const held = byKey.get(window.key)
      const level = levelOf(window)
      if (held?.window !== window || held.level === level) return
      leave(held.placeByLevel)
      held.placeByLevel = listOfLevel(level).append(window)
      held.level = level
    },

    makeRoom() {
      const leastUsed = byLevel.find((list) => list.oldest())?.oldest()
      if (leastUsed) drop(leastUsed.key)
      return leastUsed !== undefined
    },

    sweep(now) {
      for (const [seconds, list] of byLength) {
        for (let left = sweptAtOnce; left > 0; left--) {
          const oldest = list.oldest()
          if (!oldest || oldest.endsAt > now) break
          drop(oldest.key)
        }
        if (!list.oldest()) byLength.delete(seconds)
      }
    },
  }
}

function levelOf({ count, limit }: Window): number {
  return count >= limit ? used : Math.min(count, topLevel)
}

/**
 * A list of values in the order of their arrival. Appending a value, removing any value and reading the oldest value take constant time. A
 * Set would be slower: to find the oldest value, a Set passes over the values that were removed before.
 */
interface ArrivalList<T> {
  append(value: T): ArrivalPlace<T>
  oldest(): T | undefined
}

interface ArrivalPlace<T> {
  readonly value: T | undefined
  older: ArrivalPlace<T>
  newer: ArrivalPlace<T>
}

export function createArrivalList<T>(): ArrivalList<T> {
  const ring = emptyRing<T>()
  return {
    append(value) {
      const place: ArrivalPlace<T> = { value, older: ring.older, newer: ring }
      ring.older.newer = place
      ring.older = place
      return place
    },
    oldest: () => ring.newer.value,
  }
}

/** Removes an entry from its list. Call the function only once per entry. */
export function leave<T>(place: ArrivalPlace<T>): void {
  place.older.newer = place.newer
  place.newer.older = place.older
}

/**
 * Returns an empty ring: only the sentinel, which has no value. `newer` of the sentinel is the oldest entry, and `older` of the sentinel is
 * the newest entry.
 */
function emptyRing<T>(): ArrivalPlace<T> {
  const ring = { value: undefined } as ArrivalPlace<T> // the next line completes the object
  ring.older = ring.newer = ring
  return ring
}
