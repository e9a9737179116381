import { availableParallelism } from 'node:os'
import { ServiceUnavailableError } from '../core/errors'
import type { HashOptions } from './password-types'

/** At most 4 hashes at once, and as many as the machine has cores. At most 64 wait in each lane. */
export const hashQueueDefaults = { concurrency: () => Math.min(4, availableParallelism()), queue: () => 64 }

type HashQueue = <T>(work: () => Promise<T>, options?: HashOptions) => Promise<T>

/** With checked input, a hash function fails only for lack of memory. That becomes 503, because it must not look like a wrong password. */
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

export interface Turn {
  /** Networks take turns. Default: the tasks without a network form one network. */
  readonly network?: string | undefined
  /** Waits in the lane of known devices, which gets every second free slot, and has its own places. */
  readonly isKnownDevice?: boolean | undefined
  /** If it is aborted while the task waits, the task never runs. */
  readonly signal?: AbortSignal | undefined
}

type BoundedQueue = <T>(work: () => Promise<T>, turn?: Turn) => Promise<T>

/**
 * At most `queue` tasks wait in each of two lanes: known devices, and everybody else. Hashing shares four threads with the file system and
 * DNS, so many logins at once would stop the whole process. Without turns, a flood from a few networks would keep everybody else waiting.
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

  /** Passes the slot to a waiting task, so that no newer task can get it first. The lanes take turns. */
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

/** True: it is the task's turn. False: the task lost its place. */
type Waiting = (isTurn: boolean) => void

interface Lane {
  /** In a full lane, the network with the most places loses its newest place to a network with fewer. False: no place. */
  enter(network: string, task: Waiting): boolean
  leave(network: string, task: Waiting): void
  /** Gives the place of the returned task back. Undefined: no task waits. */
  next(): Waiting | undefined
}

/** Networks take turns, and the tasks of one network stay in order. */
function createLane(places: number): Lane {
  // The first network is next.
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

  /** Takes the newest place of the network with the most. False: it has no more than `least` places. */
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
