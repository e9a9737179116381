import { type ArrivalList, type ArrivalPlace, createArrivalList, leave } from './linked-list'

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
export interface HeldWindows {
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
