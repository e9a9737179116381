import { setTimeout as delay } from 'node:timers/promises'
import { ConfigurationError } from '../errors'
import type { AuthStore, Expired } from './auth-store'

export interface PurgeOptions {
  /** What ended then, or earlier, goes. Default: now; an earlier instant keeps rows for a while. One in the future ends what is alive. */
  before?: Date
}

/** Some milliseconds of work, also on SQLite, whose writers wait for each other and for whose statements the process waits. */
const batchSize = 100
/** Between batches the database belongs to others, for several times as long as the last one took and this at least. */
const [pauseFactor, leastPauseMs] = [3, 5]

/**
 * Deletes rows that can no longer matter: one-shot tokens past their end, and sessions that ended or expired. A row that tells an
 * activated account from one that never was stays. In batches, each a statement of its own along an index,
 * so that it can run beside a live service and be stopped at any time; run it from a job of yours, once a day or hour.
 *
 * @returns how many rows of each table were deleted: `{ userTokens, sessions }`, without the tables the store lacks
 * @throws ConfigurationError for a `before` that is no instant; ServiceUnavailableError when the database cannot be reached
 */
export async function purgeExpired(store: AuthStore, { before = new Date() }: PurgeOptions = {}): Promise<Record<string, number>> {
  if (!(before instanceof Date) || Number.isNaN(before.getTime())) throw new ConfigurationError('purgeExpired: `before` must be a Date.')
  const { userTokens, sessions } = store
  const deleted: Record<string, number> = {}
  for (const [name, table] of Object.entries({ userTokens, sessions })) {
    if (table) deleted[name] = await emptyInBatches(deletionOf(name, table), before)
  }
  return deleted
}

function deletionOf(name: string, table: { deleteExpired(expired: Expired): Promise<number> }): (expired: Expired) => Promise<number> {
  if (typeof table.deleteExpired === 'function') return (expired) => table.deleteExpired(expired)
  throw new ConfigurationError(`purgeExpired: the store's ${name} has no deleteExpired(); storeContract() says what it has to do.`)
}

async function emptyInBatches(deleteExpired: (expired: Expired) => Promise<number>, before: Date): Promise<number> {
  for (let deleted = 0; ; ) {
    const started = performance.now()
    const count = await deleteExpired({ before, most: batchSize })
    deleted += count
    if (count < batchSize) return deleted
    await delay(Math.max(leastPauseMs, pauseFactor * (performance.now() - started)))
  }
}
