import { createHmac, randomBytes } from 'node:crypto'

/** As many as two bytes of a hash can distinguish. */
const buckets = 65_536
const timesTheLimit = 20

/** Counts keys that have no window of their own. */
export interface OverflowBuckets {
  /** Counts one attempt in the key's bucket. `count` is above `limit` when the bucket has more than 20 times the limit. */
  increment(key: string, seconds: number, limit: number, now: number): { count: number; endsAt: number }
}

interface Kind {
  readonly endsAt: number
  readonly counts: Uint32Array
}

/**
 * Creates counters for keys beyond the number that memory holds: 65,536 buckets of 20 times the limit, for each limit and window length. The
 * bucket of a key is a hash under a random key of this process. So an attacker does not know the bucket of an account, and would have to fill
 * nearly all of them to lock it out. One set of buckets takes 256 KB, and only while it is needed.
 *
 * Attempts are never taken back, because many keys share a bucket: one could take back the attempt of another.
 */
export function createOverflowBuckets(): OverflowBuckets {
  const secret = randomBytes(32)
  const kinds = new Map<string, Kind>()

  /** Returns the buckets for one limit and window length. All of them restart at the same time, so one array of counts is enough. */
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
