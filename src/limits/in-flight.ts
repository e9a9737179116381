import { ServiceUnavailableError } from '../errors'
import type { CounterStore } from '../throttle/counter-store'

/** The attempts of one key that this process is working on, and the requests that wait for them. */
interface Key {
  /** Asking the counters at this moment. */
  asking: number
  /** Counted, and their end is not known yet. */
  granted: number
  readonly waiting: (() => void)[]
  /** The end of one attempt is written after the end of another. */
  ends: Promise<unknown>
}

const mostWaitingForKey = 20
const mostWaiting = 500
const mostWaitMs = 2_000

const keysOf = new WeakMap<CounterStore, Map<string, Key>>()
let waitingInAll = 0

/** How long one request has waited, over all keys. */
export interface Patience {
  endsAt: number | null
}

/** Attempts in flight of one key. A key is held in memory while an attempt of it runs or waits. */
export interface InFlight {
  /** Call it before the counters are asked; then one of the next two. */
  ask(): void
  /** The attempt is counted. `hasWaited`: there may be room for the next one that waits, too. */
  grant(hasWaited: boolean): void
  /** The attempt is refused. @returns whether others of this process are in flight, whose end may make room */
  refuse(): boolean
  /** Resolves when an attempt of the key ended. @throws ServiceUnavailableError after two seconds, or when too many wait */
  wait(patience: Patience): Promise<void>
  /** Writes how a granted attempt ended. `write` gets the number of other granted ones. */
  end(write: (others: number) => Promise<void>): Promise<void>
}

export function inFlight(counters: CounterStore, name: string): InFlight {
  const keys = keysOf.get(counters) ?? new Map<string, Key>()
  keysOf.set(counters, keys)
  const find = () => keys.get(name)
  const key = (): Key => {
    const known = find() ?? { asking: 0, granted: 0, waiting: [], ends: Promise.resolve() }
    keys.set(name, known)
    return known
  }
  const forgetIdle = () => {
    const { asking, granted, waiting } = key()
    if (asking + granted + waiting.length === 0) keys.delete(name)
  }
  const wakeNext = () => key().waiting.shift()?.()

  return {
    ask() {
      key().asking++
    },
    grant(hasWaited) {
      key().asking--
      key().granted++
      if (hasWaited) wakeNext()
    },
    refuse() {
      const { granted, asking } = key()
      key().asking--
      const hasOthers = granted + asking > 1
      if (!hasOthers) wakeNext() // nobody else would
      forgetIdle()
      return hasOthers
    },
    async wait(patience) {
      patience.endsAt ??= performance.now() + mostWaitMs
      await waitInLine(key(), patience.endsAt - performance.now()).finally(forgetIdle)
    },
    async end(write) {
      const held = key()
      const ending = held.ends.then(() => write(held.granted - 1))
      held.ends = ending.catch(() => undefined)
      try {
        await ending
      } finally {
        held.granted--
        wakeNext()
        forgetIdle()
      }
    },
  }
}

async function waitInLine({ waiting }: Key, waitMs: number): Promise<void> {
  if (waiting.length >= mostWaitingForKey || waitingInAll >= mostWaiting || waitMs <= 0) throw busy()
  waitingInAll++
  try {
    await new Promise<void>((resolve, reject) => {
      const wake = () => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(wake), 1)
        reject(busy())
      }, waitMs)
      waiting.push(wake)
    })
  } finally {
    waitingInAll--
  }
}

function busy(): ServiceUnavailableError {
  return new ServiceUnavailableError({ details: { retry_after_seconds: 1 } })
}

/** For tests: how many keys of these counters are held. */
export function keysInFlight(counters: CounterStore): number {
  return keysOf.get(counters)?.size ?? 0
}
