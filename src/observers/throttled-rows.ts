import type { PayloadValue } from './watch-all'

type Payload = Readonly<Record<string, PayloadValue>>

/** The rows that the audit log writes for the event `throttled`. */
export interface ThrottledRows {
  /** Returns the payloads to write now for a refusal. The list is often empty. */
  add(refusal: Payload, time: number): Payload[]
  /** Returns the refusals that were counted and not written yet. Each code and route has one payload, without a key. */
  takeRest(): Payload[]
}

interface Refusals {
  readonly payload: Payload
  /** Milliseconds since 1970. Before this time, further refusals of the key are only counted. */
  endsAt: number
  unwritten: number
}

/** The most keys in memory. A key takes about 300 bytes. */
const mostKeys = 10_000
const sweepEveryMs = 60_000

/**
 * Turns many refusals into few rows, because an attacker decides how many refusals happen. The first refusal of each key and window becomes
 * a row. The row's `count` includes this refusal and the key's refusals since its previous row. Therefore the sum of all `count` values is
 * the number of all refusals.
 *
 * At most 10,000 keys are in memory. Beyond that number, refusals of other keys are counted per code and route. These counts are written
 * once a minute.
 */
export function createThrottledRows(): ThrottledRows {
  const byKey = new Map<PayloadValue | undefined, Refusals>()
  const rest = new Map<string, Refusals>()
  let sweptAt = Number.NEGATIVE_INFINITY

  /** Adds `count` to the total of this code and route. The total belongs to no key. */
  function keepCount({ code = null, route = null }: Payload, count: number): void {
    const name = JSON.stringify([code, route])
    const kept = rest.get(name) ?? { payload: { code, route, keyDigest: null }, endsAt: 0, unwritten: 0 }
    kept.unwritten += count
    rest.set(name, kept)
  }

  function takeKept(): Payload[] {
    const rows = [...rest.values()].map(({ payload, unwritten }) => ({ ...payload, count: unwritten }))
    rest.clear()
    return rows
  }

  function dropEnded(time: number): void {
    for (const [key, { payload, endsAt, unwritten }] of byKey) {
      if (endsAt > time) continue
      if (unwritten > 0) keepCount(payload, unwritten)
      byKey.delete(key)
    }
  }

  function addWithoutRoom(refusal: Payload, time: number): Payload[] {
    keepCount(refusal, 1)
    if (Math.abs(time - sweptAt) < sweepEveryMs) return [] // the absolute value, because the clock may have been set back
    sweptAt = time
    dropEnded(time)
    return takeKept()
  }

  return {
    add(refusal, time) {
      const key = refusal['keyDigest']
      const held = byKey.get(key)
      if (held && time < held.endsAt) {
        held.unwritten++
        return []
      }
      if (!held && byKey.size >= mostKeys) return addWithoutRoom(refusal, time)
      byKey.set(key, { payload: refusal, endsAt: time + Number(refusal['retryAfterSeconds']) * 1000, unwritten: 0 })
      return [{ ...refusal, count: (held?.unwritten ?? 0) + 1 }]
    },
    takeRest() {
      for (const held of byKey.values()) {
        if (held.unwritten > 0) keepCount(held.payload, held.unwritten)
        held.unwritten = 0
      }
      return takeKept()
    },
  }
}
