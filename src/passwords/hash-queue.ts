import { availableParallelism } from 'node:os'
import { ServiceUnavailableError } from '../core/errors'
import type { HashOptions } from './password-types'

/** The default limits. As many hashes run at once as the machine has cores, but at most 4. At most 64 hashes wait in each lane. */
export const hashQueueDefaults = { concurrency: () => Math.min(4, availableParallelism()), queue: () => 64 }

/** Runs the task now, or when its turn comes. */
type HashQueue = <T>(work: () => Promise<T>, options?: HashOptions) => Promise<T>

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
type BoundedQueue = <T>(work: () => Promise<T>, turn?: Turn) => Promise<T>

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

/** Ends the wait of a task. True: it is the task's turn. False: the task lost its place. */
type Waiting = (isTurn: boolean) => void

/** Places for waiting tasks, shared by networks. */
interface Lane {
  /**
   * Takes a place. If the lane is full, the network with the most places loses its newest place to a network that has fewer.
   * @returns false if there is no place for this network
   */
  enter(network: string, task: Waiting): boolean
  /** Gives the place back. */
  leave(network: string, task: Waiting): void
  /** Returns the oldest task of the network whose turn it is, and gives its place back. Undefined: no task waits. */
  next(): Waiting | undefined
}

/** Creates a lane with `places` places. Networks take turns, and the tasks of one network stay in order. */
function createLane(places: number): Lane {
  // In the order of the turns: the first network is next.
  const networks = new Map<string, Waiting[]>()
  let taken = 0

  function leave(network: string, task: Waiting): void {
    const tasks = networks.get(network) ?? []
    const index = tasks.indexOf(task)
    if (index === -1) return
    tasks.splice(index, 1)
    taken--
    if (tasks.length === 0) networks.delete(network)
  }

  /** Takes the newest place from the network with the most places. Returns false if that network has no more than `least` places. */
  function makeRoom(least: number): boolean {
    let [heaviest, most] = ['', least]
    for (const [network, { length }] of networks) if (length > most) [heaviest, most] = [network, length]
    const task = networks.get(heaviest)?.at(-1)
    if (most === least || !task) return false
    leave(heaviest, task)
    task(false)
    return true
  }

  return {
    enter(network, task) {
      const tasks = networks.get(network) ?? []
      if (taken >= places && !makeRoom(tasks.length + 1)) return false
      networks.set(network, tasks)
      tasks.push(task)
      taken++
      return true
    },
    leave,
    next() {
      const [network, tasks] = networks.entries().next().value ?? []
      const task = tasks?.[0]
      if (network === undefined || !tasks || !task) return undefined
      leave(network, task)
      if (tasks.length > 0) {
        networks.delete(network) // to the end of the order
        networks.set(network, tasks)
      }
      return task
    },
  }
}
