import { ConfigurationError } from '../errors'
import type { CounterStore } from './counter-store'

interface Window {
  readonly key: string
  readonly seconds: number
  readonly endsAt: number
  count: number
  /** Units taken, or `full`: the fewer, the sooner it makes room. */
  level: number
}

/** A key at its limit: never made room of before it expires. */
const full = Number.POSITIVE_INFINITY

/** Counts above are one level: making room looks at no more levels than this, whatever the limits are. */
const topLevel = 64

/** Expired windows dropped per call and window length: the work is spread, and still faster than keys can arrive. */
const sweptPerCall = 32

/**
 * Counters of this process, bounded. When `maxKeys` are held, the one with the fewest units makes room; keys at their
 * limit never do, and when there are only such keys, newcomers of one window length share one overflow budget: a flood
 * of other keys cannot buy anyone fresh attempts. Expired keys go as calls come in; there is no timer.
 *
 * `now` is in milliseconds and should not jump; the default is the monotonic clock.
 *
 * @throws ConfigurationError when `maxKeys` is not a whole number of at least 1.
 */
export function memoryCounters(options: { maxKeys?: number; now?: () => number } = {}): CounterStore {
  const { maxKeys = 100_000, now = () => performance.now() } = options
  if (!Number.isSafeInteger(maxKeys) || maxKeys < 1)
    throw new ConfigurationError('memoryCounters: maxKeys must be a whole number of at least 1.')

  const windows = new Map<string, Window>()
  const overflow = new Map<number, Window>()
  /** By length, oldest first: windows of one length end in the order they began. */
  const byLength = new Map<number, Set<Window>>()
  const byLevel = new Map<number, Set<Window>>()

  function sweep(): void {
    for (const sameLength of byLength.values()) {
      let left = sweptPerCall
      for (const window of sameLength) {
        if (left-- === 0 || window.endsAt > now()) break
        remove(window)
      }
    }
  }

  function remove(window: Window): void {
    windows.delete(window.key)
    take(byLength, window.seconds, window)
    take(byLevel, window.level, window)
  }

  function setLevel(window: Window, level: number): void {
    if (level === window.level) return
    take(byLevel, window.level, window)
    window.level = level
    put(byLevel, level, window)
  }

  function find(key: string): Window | undefined {
    const window = windows.get(key)
    if (!window || window.endsAt > now()) return window
    remove(window)
    return undefined
  }

  function open(key: string, seconds: number): Window {
    if (windows.size >= maxKeys && !makeRoom()) return openOverflow(seconds)
    const window: Window = { key, seconds, endsAt: now() + seconds * 1000, count: 0, level: 0 }
    windows.set(key, window)
    put(byLength, seconds, window)
    put(byLevel, 0, window)
    return window
  }

  function makeRoom(): boolean {
    let level = full
    for (const used of byLevel.keys()) level = Math.min(level, used)
    const [oldest] = byLevel.get(level) ?? []
    if (level === full || !oldest) return false
    remove(oldest)
    return true
  }

  /** Not among the keys, so it neither makes room nor takes any. */
  function openOverflow(seconds: number): Window {
    const shared = overflow.get(seconds)
    if (shared && shared.endsAt > now()) return shared
    for (const [length, window] of overflow) if (window.endsAt <= now()) overflow.delete(length)
    const window: Window = { key: '', seconds, endsAt: now() + seconds * 1000, count: 0, level: full }
    overflow.set(seconds, window)
    return window
  }

  const store: CounterStore = {
    async increment(key, windowSeconds, limit = full) {
      sweep()
      const window = find(key) ?? open(key, windowSeconds)
      window.count++
      if (windows.get(key) === window) setLevel(window, window.count >= limit ? full : Math.min(window.count, topLevel))
      return { count: window.count, resetSeconds: secondsLeft(window, now()) }
    },

    async decrement(key) {
      const window = find(key)
      if (!window || window.count === 0) return
      window.count--
      setLevel(window, Math.min(window.count, topLevel))
    },

    async reset(key) {
      const window = find(key)
      if (window) remove(window)
    },
  }
  inProcess.add(store)
  return store
}

const inProcess = new WeakSet<CounterStore>()

/** True for a store made here: it can be neither down nor late. */
export function isInProcess(store: CounterStore): boolean {
  return inProcess.has(store)
}

function secondsLeft(window: Window, now: number): number {
  return Math.max(1, Math.ceil((window.endsAt - now) / 1000))
}

function put(index: Map<number, Set<Window>>, at: number, window: Window): void {
  const set = index.get(at)
  if (set) set.add(window)
  else index.set(at, new Set([window]))
}

function take(index: Map<number, Set<Window>>, at: number, window: Window): void {
  const set = index.get(at)
  set?.delete(window)
  if (set?.size === 0) index.delete(at)
}
