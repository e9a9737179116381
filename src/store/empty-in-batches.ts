import { setTimeout as delay } from 'node:timers/promises'
import type { Expired } from './auth-store'

/** Some milliseconds of work, also on SQLite, whose writers wait for each other and for whose statements the process waits. */
const batchSize = 100
/** Between batches the database belongs to others, for several times as long as the last one took and this at least. */
const [pauseFactor, leastPauseMs] = [3, 5]

/** Deletes everything that ended before an instant, in batches with pauses between them. Returns how many rows were deleted. */
export async function emptyInBatches(deleteExpired: (expired: Expired) => Promise<number>, before: Date): Promise<number> {
  for (let deleted = 0; ; ) {
    const started = performance.now()
    const count = await deleteExpired({ before, most: batchSize })
    deleted += count
    if (count < batchSize) return deleted
    await delay(Math.max(leastPauseMs, pauseFactor * (performance.now() - started)))
  }
}
