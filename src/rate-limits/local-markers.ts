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
