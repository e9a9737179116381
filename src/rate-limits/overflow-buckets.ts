import { createHmac, randomBytes } from 'node:crypto'

/** The number of buckets. Two bytes of a hash choose the bucket of a key. */
const buckets = 65_536
const timesTheLimit = 20

/** Counts the keys that begin while the store has `maxKeys` keys. */
export interface OverflowBuckets {
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
export function createOverflowBuckets(): OverflowBuckets {
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
