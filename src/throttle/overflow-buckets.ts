import { createHmac, randomBytes } from 'node:crypto'

/** Two bytes of a hash. */
const buckets = 65_536
const timesTheLimit = 20

/** What keys count in that found no place of their own. */
export interface OverflowBuckets {
  /** Takes one unit of the key's bucket. `count` is above `limit` once the bucket holds more than 20 times the limit. */
  increment(key: string, seconds: number, limit: number, now: number): { count: number; endsAt: number }
}

interface Kind {
  readonly endsAt: number
  readonly counts: Uint32Array
}

/**
 * Counters for keys beyond the number that memory holds: 65,536 buckets of 20 times the limit, for each limit and window length. A key's
 * bucket is a hash under a random key of this process, so an attacker cannot tell which bucket a client or an account is in, and would
 * have to fill nearly all of them to shut one out. One kind takes 256 KB, and only while it is needed.
 *
 * Units are not given back, because many keys share a bucket: one of them could give back what another one used.
 */
export function createOverflowBuckets(): OverflowBuckets {
  const secret = randomBytes(32)
  const kinds = new Map<string, Kind>()

  /** All buckets of a kind begin anew together, so that there is one array of counts and not one of windows. */
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
