import { ServiceUnavailableError } from '../core/errors'
import type { CounterStore } from './counter-store'

/** The attempts of a key that are in progress in this process, and the requests that wait for those attempts. */
interface Key {
  /** The number of attempts that are reading the counters now. */
  asking: number
  /** The number of attempts that were counted and are not finished. */
  granted: number
  readonly waiting: (() => void)[]
  /**
   * Resolves when all earlier results are written. The next result waits for this promise, because results are written one after another.
   */
  ends: Promise<unknown>
}

const mostWaitingForKey = 20
const mostWaiting = 500
const mostWaitMs = 2_000

const keysOf = new WeakMap<CounterStore, Map<string, Key>>()
let waitingInAll = 0

/** The time when a request stops waiting. All keys of the request share this time. Null before the first wait. */
export interface Patience {
  endsAt: number | null
}

/** The attempts in progress for a key. The key is in memory only while an attempt runs or waits. */
export interface InFlight {
  /** Begins an attempt. Call the method before the counters are read. Call `grant` or `refuse` afterwards. */
  ask(): void
  /**
   * Records that the attempt was counted. With `hasWaited`, wakes the next waiting attempt, because the limit may also allow that attempt.
   */
  grant(hasWaited: boolean): void
  /**
   * Records that the limit rejected the attempt.
   * @returns true if other attempts of this process are in progress; when they end, the limit may allow this attempt
   */
  refuse(): boolean
  /**
   * Resolves when an attempt of the key ends.
   * @throws ServiceUnavailableError after two seconds, or if too many requests wait
   */
  wait(patience: Patience): Promise<void>
  /** Writes the result of a granted attempt. `write` gets the number of other granted attempts. */
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
      if (!hasOthers) wakeNext() // no other attempt would wake the next waiting attempt
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

/** Returns how many keys of these counters are in memory. Used by tests. */
export function keysInFlight(counters: CounterStore): number {
  return keysOf.get(counters)?.size ?? 0
}
