import { type AppErrorOptions, TooManyRequestsError } from '../core/errors'
import type { EventEmitter } from '../core/events'
import type { Keys } from '../core/keys'
import type { CounterStore, RateLimit } from './counter-store'
import { tellThrottled } from './tell-throttled'
import { attempt, clear, counterKey, giveBack } from './throttle'

export interface LimitContext {
  readonly counters: CounterStore
  readonly events: EventEmitter
  readonly keys: Keys
}

export type Exhausted = new (options: AppErrorOptions) => TooManyRequestsError

/** An attempt that was counted before its password or code is checked. */
export interface TakenUnit {
  /** The attempt did not fail. Only this attempt is taken back. */
  giveBack(): Promise<void>
  /** The attempt succeeded. The count of the key is reset. */
  clear(): Promise<void>
}

/**
 * Counts an attempt against a rate limit before the attempt is checked, so that many requests at once cannot exceed the limit. `subject` is
 * hashed. If the limit is reached, the function emits an event.
 * @throws the error of `Exhausted`, with details.retry_after_seconds
 */
export async function takeUnit(
  ctx: LimitContext,
  rateLimit: RateLimit | false,
  [name, subject]: readonly [name: string, subject: string],
  Exhausted: Exhausted = TooManyRequestsError,
): Promise<TakenUnit> {
  if (rateLimit === false) return uncounted
  const key = counterKey(name, subject)
  await tellRefusal(ctx, { name, subject }, () => attempt(ctx.counters, rateLimit, key, Exhausted))
  return { giveBack: () => giveBack(ctx.counters, rateLimit, key), clear: () => clear(ctx.counters, rateLimit, key) }
}

export const uncounted: TakenUnit = { giveBack: async () => undefined, clear: async () => undefined }

/** Emits `throttled` if `take` throws TooManyRequestsError. */
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

/** Returns the route in the name of a limit: `oauth_callback` for `route:oauth_callback`, and `login` for `login:client`. */
function routeOf(name: string): string {
  const [first = '', second = ''] = name.split(':')
  return first === 'route' ? second : first
}
