import type { AuthContext } from '../context'
import { type AppErrorOptions, TooManyRequestsError } from '../errors'
import type { Budget } from '../throttle/counter-store'
import { attempt, clear, counterKey, giveBack } from '../throttle/throttle'
import { tellThrottled } from './tell-throttled'

export type LimitContext = Pick<AuthContext, 'counters' | 'events' | 'keys'>
export type Exhausted = new (options: AppErrorOptions) => TooManyRequestsError

/** A unit that was taken before what it pays for. */
export interface TakenUnit {
  /** What it paid for did not fail: this unit back, no more. */
  giveBack(): Promise<void>
  /** It succeeded: everything counted under the key is forgotten. */
  clear(): Promise<void>
}

/**
 * Takes one unit of a budget before the check it pays for, so that no burst overshoots. `subject` is
 * hashed. Observers hear of a refusal.
 * @throws what `Exhausted` makes, with details.retry_after_seconds
 */
export async function takeUnit(
  ctx: LimitContext,
  budget: Budget | false,
  [name, subject]: readonly [name: string, subject: string],
  Exhausted: Exhausted = TooManyRequestsError,
): Promise<TakenUnit> {
  const key = counterKey(name, subject)
  await tellRefusal(ctx, { name, subject }, () => attempt(ctx.counters, budget, key, Exhausted))
  return { giveBack: () => giveBack(ctx.counters, budget, key), clear: () => clear(ctx.counters, budget, key) }
}

/** Tells observers where `take` is refused for too many requests. */
export async function tellRefusal<T>(
  ctx: LimitContext,
  { name, subject }: { name: string; subject: string },
  take: () => Promise<T>,
): Promise<T> {
  try {
    return await take()
  } catch (error) {
    if (error instanceof TooManyRequestsError) {
      const retryAfterSeconds = Number(error.details['retry_after_seconds'])
      tellThrottled(ctx, { code: error.code, route: routeOf(name), key: counterKey(name, subject), retryAfterSeconds })
    }
    throw error
  }
}

/** `route:oauth_callback` and `login:client` are about `oauth_callback` and `login`. */
function routeOf(name: string): string {
  const [first = '', second = ''] = name.split(':')
  return first === 'route' ? second : first
}
