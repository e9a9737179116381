import { availableParallelism } from 'node:os'
import { ServiceUnavailableError } from '../core/errors'
import { createBoundedQueue } from './bounded-queue'
import type { HashOptions } from './password-types'

/** The default limits. As many hashes run at once as the machine has cores, but at most 4. At most 64 hashes wait in each lane. */
export const hashQueueDefaults = { concurrency: () => Math.min(4, availableParallelism()), queue: () => 64 }

/** Runs the task now, or when its turn comes. */
export type HashQueue = <T>(work: () => Promise<T>, options?: HashOptions) => Promise<T>

/**
 * Creates a bounded queue for hashes with checked input. With checked input, a hash function fails only for lack of memory. The queue
 * answers that failure with 503, because the failure must not look like a wrong password.
 */
export function createHashQueue({
  concurrency = hashQueueDefaults.concurrency(),
  queue = hashQueueDefaults.queue(),
}: {
  concurrency?: number
  queue?: number
} = {}): HashQueue {
  const run = createBoundedQueue({ concurrency, queue })
  return (work, { onBegin, ...turn } = {}) =>
    run(() => {
      onBegin?.()
      return orBusy(work)
    }, turn)
}

async function orBusy<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    throw new ServiceUnavailableError({ cause, details: { retry_after_seconds: 1 } })
  }
}
