/** Used values, kept in this process until they expire. */
export interface LocalMarkers {
  /**
   * Marks a value as used. Returns true for the first caller only.
   * @param digest SHA-256 of the value
   * @param expiresAt seconds since 1970; the same for every call with this value
   */
  claim(digest: Buffer, expiresAt: number): boolean
}

/** Markers that expire within this many seconds share a bucket. */
const bucketSeconds = 10

/** A marker takes at most 100 bytes, so all of them take less than 32 MiB. */
const mostMarkers = 300_000

/** Half a SHA-256. That is enough, because the values are random and nobody chooses them. A whole hash would take twice the memory. */
const digestBytes = 16

/**
 * Stores markers in buckets by expiry. A full set drops its oldest bucket and never rejects a new value. So a flood makes old values usable
 * again for the seconds that they have left.
 *
 * @param now milliseconds since 1970
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
