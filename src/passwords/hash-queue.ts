import { availableParallelism } from 'node:os'
import { ServiceUnavailableError } from '../errors'
import { type BoundedQueue, createBoundedQueue } from './bounded-queue'

/** As many hashes at once as there are cores, at most 4; 64 waiting (contract section 8). */
export const hashQueueDefaults = { concurrency: () => Math.min(4, availableParallelism()), queue: () => 64 }

/**
 * A bounded queue for work that was checked before: what a hash function can then still fail at is its own memory, so
 * that is 503 as well. Busy is not the same as a wrong password.
 */
export function createHashQueue({
  concurrency = hashQueueDefaults.concurrency(),
  queue = hashQueueDefaults.queue(),
}: {
  concurrency?: number
  queue?: number
} = {}): BoundedQueue {
  const run = createBoundedQueue({ concurrency, queue })
  return (work) => run(() => orBusy(work))
}

async function orBusy<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    throw new ServiceUnavailableError({ cause, details: { retry_after_seconds: 1 } })
  }
}
