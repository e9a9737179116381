import { createHash } from 'node:crypto'
import { askShared } from './local-fallback'
import type { CounterStore } from './rate-limit'

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

/** Remembers used values in this process until the values expire. */
export interface LocalMarkers {
  /**
   * Marks a value as used. Returns true for the first caller only.
   * @param digest SHA-256 of the value
   * @param expiresAt seconds since 1970; every call with this value must pass the same time
   */
  claim(digest: Buffer, expiresAt: number): boolean
}

/** Markers that expire within this many seconds share a bucket. */
const bucketSeconds = 10

/** The most markers in memory. A marker takes at most 100 bytes, so all markers take less than 32 MiB. */
const mostMarkers = 300_000

/**
 * How many bytes of each SHA-256 are stored: half of them. Half is enough, because the values are random and nobody can choose them. A
 * whole hash would take twice the memory.
 */
const digestBytes = 16

/**
 * Creates markers in buckets by expiry. If there are `mostMarkers` markers, a new value replaces the bucket that expires first. After a
 * flood of new values, a value of that bucket can therefore be used again until its expiry.
 *
 * @param now returns milliseconds since 1970
 */
export function createLocalMarkers(now: () => number): LocalMarkers {
  const buckets = new Map<number, Set<string>>()
  let held = 0

  function drop(end: number): void {
    held -= buckets.get(end)?.size ?? 0
    buckets.delete(end)
  }

  function dropExpired(): void {
    const current = now() / 1000 / bucketSeconds
    for (const end of buckets.keys()) if (end <= current) drop(end)
  }

  function bucketOf(end: number): Set<string> {
    const known = buckets.get(end)
    if (known) return known
    dropExpired()
    const bucket = new Set<string>()
    buckets.set(end, bucket)
    return bucket
  }

  return {
    claim(digest, expiresAt) {
      const end = Math.ceil(expiresAt / bucketSeconds)
      const marker = digest.toString('latin1', 0, digestBytes)
      if (buckets.get(end)?.has(marker)) return false
      if (held >= mostMarkers) drop(Math.min(...buckets.keys()))
      bucketOf(end).add(marker)
      held += 1
      return true
    },
  }
}
