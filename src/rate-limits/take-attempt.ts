import { TooManyRequestsError } from '../core/errors'
import type { RateLimit } from './counter-store'
import { inFlight, type Patience } from './in-flight'
import type { Exhausted, LimitContext } from './take-unit'
import { attempt, clear, counterKey, giveBack } from './throttle'

/** An attempt that was counted before its password or code is checked. The attempt is in progress until one of these methods is called. */
export interface CountedAttempt {
  /** The attempt failed and stays counted. */
  keep(): Promise<void>
  /** The attempt did not fail. Only this attempt is taken back. */
  giveBack(): Promise<void>
  /** The attempt succeeded. The count of the key is reset. */
  clear(): Promise<void>
}

export interface AttemptOf {
  readonly name: string
  readonly subject: string
  readonly rateLimit: RateLimit | false
}

const nothing = async () => undefined
export const unlimited: CountedAttempt = { keep: nothing, giveBack: nothing, clear: nothing }

/**
 * Counts an attempt against a rate limit before the password or code is checked, so that many requests at once cannot exceed the limit. If
 * attempts in progress fill the limit, the request waits for these attempts, because they may succeed. The request does not wait for
 * attempts of another process. Those attempts count until they end.
 * @throws the error of `Exhausted`, with details.retry_after_seconds; ServiceUnavailableError after two seconds, or if too many requests
 *   wait
 */
export async function countAttempt(
  ctx: LimitContext,
  { name, subject, rateLimit }: AttemptOf,
  Exhausted: Exhausted,
  patience: Patience = { endsAt: null },
): Promise<CountedAttempt> {
  if (rateLimit === false) return unlimited
  const key = counterKey(name, subject)
  const flight = inFlight(ctx.counters, key)
  for (let hasWaited = false; ; hasWaited = true) {
    flight.ask()
    try {
      await attempt(ctx.counters, rateLimit, key, Exhausted)
    } catch (error) {
      const othersMayEnd = flight.refuse()
      if (!othersMayEnd || !(error instanceof TooManyRequestsError)) throw error
      await flight.wait(patience)
      continue
    }
    flight.grant(hasWaited)
    return endingOnce({
      keep: () => flight.end(nothing),
      giveBack: () => flight.end(() => giveBack(ctx.counters, rateLimit, key)),
      clear: () => flight.end((others) => clear(ctx.counters, rateLimit, key, others)),
    })
  }
}

/**
 * The longest time that an attempt can be in progress, in milliseconds. A handler has less time (`http/routes.ts`). If an attempt takes
 * longer, for example in a host's hasher, the attempt counts as failed.
 */
const longestMs = 60_000

function endingOnce({ keep, giveBack, clear }: CountedAttempt): CountedAttempt {
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
