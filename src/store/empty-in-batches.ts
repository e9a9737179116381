import { setTimeout as delay } from 'node:timers/promises'
import type { Expired } from './auth-store'

/**
 * The number of rows in a batch. A batch takes a few milliseconds. SQLite needs short batches: its writers wait for each other, and its
 * driver blocks the process.
 */
const batchSize = 100
/** A pause is `pauseFactor` times as long as the last batch, and at least `leastPauseMs`. Other users of the database work meanwhile. */
const [pauseFactor, leastPauseMs] = [3, 5]

/** Deletes all rows that ended before an instant, in batches with pauses between them. Returns how many rows it deleted. */
export async function emptyInBatches(deleteExpired: (expired: Expired) => Promise<number>, before: Date): Promise<number> {
  for (let deleted = 0; ; ) {
    const started = performance.now()
    const count = await deleteExpired({ before, most: batchSize })
    deleted += count
    if (count < batchSize) return deleted
    await delay(Math.max(leastPauseMs, pauseFactor * (performance.now() - started)))
  }
}
