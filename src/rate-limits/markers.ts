import { createHash } from 'node:crypto'
import type { CounterStore } from './counter-store'
import { askShared } from './local-fallback'
import { createLocalMarkers, type LocalMarkers } from './local-markers'

/** Remembers used single-use values until the values expire. */
export interface Markers {
  /**
   * Marks a value as used. Resolves with true for exactly one caller, and with false for every other caller.
   * @param expiresAt seconds since 1970; every call with this value must pass the same time
   */
  claim(value: string, expiresAt: number): Promise<boolean>
}

/**
 * Creates markers in the counter store that the processes share. If there is no shared store, the markers are in this process only.
 *
 * While the shared store responds, its atomic increment decides between processes. Only the caller with the count 1 marks the value in this
 * process too. Otherwise a losing caller could block the winner in this process. While the store does not respond, each process decides for
 * itself.
 *
 * @param name prefix of the stored keys
 * @param counters the store that the host's processes share; null: no shared store
 * @param now returns milliseconds since 1970
 */
export function createMarkers(name: string, { counters, now }: { counters: CounterStore | null; now: () => number }): Markers {
  const shared = counters && askShared(counters)
  const local = localMarkersOf(counters, now)
  return {
    async claim(value, expiresAt) {
      const seconds = Math.max(1, expiresAt - Math.floor(now() / 1000))
      const digest = createHash('sha256').update(value, 'utf8').digest()
      const there = shared && (await shared(`${name}:${digest.toString('base64url')}`, seconds, 1))
      if (there && there.count > 1) return false
      return local.claim(digest, expiresAt)
    },
  }
}

const known = new WeakMap<CounterStore, LocalMarkers>()

/** Returns the local markers of a store. Two routers with the same `memoryCounters()` share the markers. */
function localMarkersOf(counters: CounterStore | null, now: () => number): LocalMarkers {
  const markers = (counters && known.get(counters)) ?? createLocalMarkers(now)
  if (counters) known.set(counters, markers)
  return markers
}
