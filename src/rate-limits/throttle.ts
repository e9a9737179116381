import { createHash } from 'node:crypto'
import type { AppErrorOptions, TooManyRequestsError } from '../core/errors'
import type { CounterStore, RateLimit } from './counter-store'
import { withLocalFallback } from './local-fallback'

/**
 * Counts an attempt before the expensive check, so that parallel requests cannot exceed the limit. If `rateLimit` is false, there is no limit.
 * If the store fails, this process counts (`withLocalFallback`).
 *
 * @throws the given error if the limit is exceeded, with `details.retry_after_seconds` (a whole number, at least 1)
 */
export async function attempt(
  counters: CounterStore,
  rateLimit: RateLimit | false,
  key: string,
  Exhausted: new (options: AppErrorOptions) => TooManyRequestsError,
): Promise<void> {
  if (rateLimit === false) return
  const guarded = withLocalFallback(counters)
  const { count, resetSeconds } = await guarded.increment(key, rateLimit.windowSeconds, rateLimit.attempts)
  if (count <= rateLimit.attempts) return
  // The function takes a rejected attempt back. Otherwise many parallel logins would lock a person out, even if all of them had the right
  // password.
  await guarded.decrement(key)
  throw new Exhausted({ details: { retry_after_seconds: Math.max(1, Math.ceil(resetSeconds)) } })
}

/** Takes back only the attempt of this caller. */
export async function giveBack(counters: CounterStore, rateLimit: RateLimit | false, key: string): Promise<void> {
  if (rateLimit !== false) await withLocalFallback(counters).decrement(key)
}

/** Resets the counter of a key, but keeps the attempts that are still running. A running attempt may still fail. */
export async function clear(counters: CounterStore, rateLimit: RateLimit | false, key: string, inFlight = 0): Promise<void> {
  if (rateLimit === false) return
  const guarded = withLocalFallback(counters)
  await guarded.reset(key)
  for (let left = inFlight; left > 0; left--) await guarded.increment(key, rateLimit.windowSeconds, rateLimit.attempts)
}

/** Returns a key of fixed length without personal data: `login:email` and an address become `login:email:<SHA-256>`. */
export function counterKey(limitName: string, subject: string): string {
  return `${limitName}:${createHash('sha256').update(subject, 'utf8').digest('base64url')}`
}
