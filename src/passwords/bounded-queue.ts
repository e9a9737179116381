import { ServiceUnavailableError } from '../core/errors'
import { createLane } from './fair-lane'

/** Where a task waits. */
export interface Turn {
  /** The client's network. Networks take turns. Default: the tasks without a network form one network. */
  readonly network?: string | undefined
  /** True: the task waits in the lane of known devices. That lane gets every second free slot, and has its own places. */
  readonly isKnownDevice?: boolean | undefined
  /** If the signal is aborted while the task waits, the task never runs. */
  readonly signal?: AbortSignal | undefined
}

/** Runs the task now, or when its turn comes. */
export type BoundedQueue = <T>(work: () => Promise<T>, turn?: Turn) => Promise<T>

/**
 * Creates a queue that runs at most `concurrency` tasks at once. At most `queue` tasks wait in each of two lanes: one for known devices and
 * one for everybody else. Hashing shares four threads with the file system and DNS. Without a limit, many logins at once would stop the
 * whole process. Without turns, a flood from a few networks would keep everybody else waiting.
 *
 * @throws ServiceUnavailableError when the lane is full, and when the task was aborted while it waited
 */
export function createBoundedQueue({ concurrency, queue }: { concurrency: number; queue: number }): BoundedQueue {
  const lanes = [createLane(queue), createLane(queue)] as const
  let running = 0
  let next = 0

  async function enter({ network = '', isKnownDevice, signal }: Turn): Promise<void> {
    if (signal?.aborted) throw busy()
    if (running < concurrency) {
      running++
      return
    }
    const lane = lanes[isKnownDevice ? 0 : 1]
    await new Promise<void>((resolve, reject) => {
      const end = (isTurn: boolean) => {
        signal?.removeEventListener('abort', giveUp)
        if (isTurn) resolve()
        else reject(busy())
      }
      const giveUp = () => {
        lane.leave(network, end)
        end(false)
      }
      signal?.addEventListener('abort', giveUp, { once: true })
      if (!lane.enter(network, end)) end(false)
    })
  }

  /** Passes the free slot to a waiting task, so that no newer task can get the slot first. The lanes take turns. */
  function leave(): void {
    const [first, second] = next === 0 ? lanes : [lanes[1], lanes[0]]
    next = 1 - next
    const begin = first.next() ?? second.next()
    if (begin) begin(true)
    else running--
  }

  return async (work, turn = {}) => {
    await enter(turn)
    try {
      return await work()
    } finally {
      leave()
    }
  }
}

function busy(): ServiceUnavailableError {
  return new ServiceUnavailableError({ details: { retry_after_seconds: 1 } })
}
