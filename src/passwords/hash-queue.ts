import { availableParallelism } from 'node:os'
import { ServiceUnavailableError } from '../errors'
import { createBoundedQueue } from './bounded-queue'
import type { HashOptions } from './password-hasher'

/** As many hashes at once as there are cores, at most 4; 64 waiting. */
export const hashQueueDefaults = { concurrency: () => Math.min(4, availableParallelism()), queue: () => 64 }

/** Runs the work now, or after what came before it. */
export type HashQueue = <T>(work: () => Promise<T>, options?: HashOptions) => Promise<T>

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
} = {}): HashQueue {
  const run = createBoundedQueue({ concurrency, queue })
  return (work, { onBegin, signal } = {}) =>
    run(() => {
      onBegin?.()
      return orBusy(work)
    }, signal)
}

async function orBusy<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    throw new ServiceUnavailableError({ cause, details: { retry_after_seconds: 1 } })
  }
}
