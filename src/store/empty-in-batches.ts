import { setTimeout as delay } from 'node:timers/promises'
import type { Expired, PurgeRun } from './auth-store'

/** The sizes of batches, in rows. */
const [firstSize, leastSize, mostSize] = [20, 20, 2_000]
/**
 * How long a batch should take, in milliseconds. The driver of SQLite blocks the process while a statement runs. The limit for a batch is
 * 20 ms there, so this goal leaves room for a slow batch.
 */
const goalMs = 10
/** A pause is `pauseFactor` times as long as the last batch, and at least `leastPauseMs`. Other users of the database work meanwhile. */
const [pauseFactor, leastPauseMs] = [2, 2]

export interface BatchOptions {
  /** Where the run goes on. At its end, `isOver` is true. Default: it begins. */
  run?: PurgeRun | undefined
  /** Ends the run after the current batch. With a signal, the pauses do not keep the process alive. */
  signal?: AbortSignal | undefined
  /** A monotonic clock in milliseconds. */
  clock?: () => number
}

/** Deletes all rows that ended before an instant, in batches with pauses between them. Returns how many rows it deleted. */
export async function emptyInBatches(
  deleteExpired: (expired: Required<Expired>) => Promise<number>,
  before: Date,
  { run = {}, signal, clock = () => performance.now() }: BatchOptions = {},
): Promise<number> {
  for (let deleted = 0, most = firstSize; ; ) {
    const started = clock()
    const count = await deleteExpired({ before, most, run })
    const tookMs = clock() - started
    deleted += count
    if (run.isOver ?? count < most) {
      run.isOver = true
      return deleted
    }
    most = nextSize(most, tookMs)
    const pauseMs = Math.max(leastPauseMs, pauseFactor * tookMs)
    await delay(pauseMs, undefined, signal ? { signal, ref: false } : {}).catch(() => undefined)
    if (signal?.aborted) return deleted // never before the first batch: a purge that is always ended goes on in the end
  }
}

/** Grows at most by half at once, because one fast batch says little. */
function nextSize(size: number, tookMs: number): number {
  const fitting = Math.floor((size * goalMs) / Math.max(tookMs, 0.1))
  return Math.max(leastSize, Math.min(fitting, Math.ceil(size * 1.5), mostSize))
}
