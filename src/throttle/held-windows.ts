import { type ArrivalList, type ArrivalPlace, createArrivalList, leave } from './arrival-list'

/** What one key has used since `endsAt - seconds * 1000`. */
export interface Window {
  readonly key: string
  readonly seconds: number
  /** Milliseconds of the store's clock. */
  readonly endsAt: number
  count: number
  /** What the last caller compared with. */
  limit: number
}

/** The windows in memory, findable by key, by age and by use; every verb takes the same time however many there are. */
export interface HeldWindows {
  size(): number
  find(key: string): Window | undefined
  hold(window: Window): void
  /** To be told whenever `count` or `limit` of a held window changed. */
  regrade(window: Window): void
  drop(key: string): void
  /** Drops the oldest of those with the fewest units; false when every one is at its limit. */
  makeRoom(): boolean
  /** Drops what has expired, a few of each length. */
  sweep(now: number): void
}

interface Held {
  readonly window: Window
  readonly placeByLength: ArrivalPlace<Window>
  placeByLevel: ArrivalPlace<Window>
  level: number
}

/** Expired windows dropped per sweep and length: the work is spread, and still faster than keys can arrive. */
const sweptAtOnce = 32

/** Units told apart when room must be made; more count as many. */
const topLevel = 64

/** At its limit: never made room of. */
const spent = topLevel + 1

export function createHeldWindows(): HeldWindows {
  const byKey = new Map<string, Held>()
  /** Windows of one length end in the order they began. */
  const byLength = new Map<number, ArrivalList<Window>>()
  const byLevel = Array.from({ length: spent }, () => createArrivalList<Window>())
  const spentOnes = createArrivalList<Window>()

  const listOfLevel = (level: number) => byLevel[level] ?? spentOnes

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
  return count >= limit ? spent : Math.min(count, topLevel)
}
