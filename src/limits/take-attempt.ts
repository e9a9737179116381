import { TooManyRequestsError } from '../errors'
import type { Budget } from '../throttle/counter-store'
import { attempt, clear, counterKey, giveBack } from '../throttle/throttle'
import { inFlight, type Patience } from './in-flight'
import type { Exhausted, LimitContext } from './take-unit'

/** A unit that was taken before what it pays for, and counts as in flight until one of these is called. */
export interface Attempt {
  /** The attempt failed: the unit stays. */
  keep(): Promise<void>
  /** It did not fail: this unit back, no more. */
  giveBack(): Promise<void>
  /** It succeeded: the failures counted under the key are forgotten. */
  clear(): Promise<void>
}

export interface AttemptOf {
  readonly name: string
  readonly subject: string
  readonly budget: Budget | false
}

const nothing = async () => undefined
export const unlimited: Attempt = { keep: nothing, giveBack: nothing, clear: nothing }

/**
 * Takes one unit of a budget before the check it pays for, so that no burst overshoots. A request that only attempts in flight keep out
 * waits for them: what has not failed is no failure. Attempts in flight in another process count until they end.
 * @throws what `Exhausted` makes, with details.retry_after_seconds; ServiceUnavailableError after two seconds, or when too many wait
 */
export async function takeAttempt(
  ctx: LimitContext,
  { name, subject, budget }: AttemptOf,
  Exhausted: Exhausted,
  patience: Patience = { endsAt: null },
): Promise<Attempt> {
  if (budget === false) return unlimited
  const key = counterKey(name, subject)
  const flight = inFlight(ctx.counters, key)
  for (let hasWaited = false; ; hasWaited = true) {
    flight.ask()
    try {
      await attempt(ctx.counters, budget, key, Exhausted)
    } catch (error) {
      const othersMayEnd = flight.refuse()
      if (!othersMayEnd || !(error instanceof TooManyRequestsError)) throw error
      await flight.wait(patience)
      continue
    }
    flight.grant(hasWaited)
    return endingOnce({
      keep: () => flight.end(nothing),
      giveBack: () => flight.end(() => giveBack(ctx.counters, budget, key)),
      clear: () => flight.end((others) => clear(ctx.counters, budget, key, others)),
    })
  }
}

/** Longer than a request may take. What hangs longer, in a hasher of the host's say, counts as failed and is held no more. */
const longestMs = 60_000

function endingOnce({ keep, giveBack, clear }: Attempt): Attempt {
  let isOver = false
  const once = (end: () => Promise<void>) => async () => {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    await end()
  }
  const timer = setTimeout(once(keep), longestMs)
  timer.unref()
  return { keep: once(keep), giveBack: once(giveBack), clear: once(clear) }
}
