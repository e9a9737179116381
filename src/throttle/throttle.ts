import { createHash } from 'node:crypto'
import type { AppErrorOptions, TooManyRequestsError } from '../errors'
import type { Budget, CounterStore } from './counter-store'
import { withLocalFallback } from './local-fallback'

/**
 * Takes one unit before the expensive check: a burst cannot overshoot. `false` is no budget. Whatever the store does,
 * something counts (`withLocalFallback`).
 *
 * @throws the given error, with `details.retry_after_seconds` (a whole number, at least 1), once the budget is spent.
 */
export async function attempt(
  counters: CounterStore,
  budget: Budget | false,
  key: string,
  Exhausted: new (options: AppErrorOptions) => TooManyRequestsError,
): Promise<void> {
  if (budget === false) return
  const guarded = withLocalFallback(counters)
  const { count, resetSeconds } = await guarded.increment(key, budget.windowSeconds, budget.attempts)
  if (count <= budget.attempts) return
  // A refused caller used nothing: were its unit kept, a burst of good logins would lock itself out after giving theirs back.
  await guarded.decrement(key)
  throw new Exhausted({ details: { retry_after_seconds: Math.max(1, Math.ceil(resetSeconds)) } })
}

/** Gives back the unit this caller took, no more. */
export async function giveBack(counters: CounterStore, budget: Budget | false, key: string): Promise<void> {
  if (budget !== false) await withLocalFallback(counters).decrement(key)
}

/**
 * Forgets what was counted under the key, but for so many attempts whose end is not known yet: what is in flight when another one
 * succeeds may still fail.
 */
export async function clear(counters: CounterStore, budget: Budget | false, key: string, inFlight = 0): Promise<void> {
  if (budget === false) return
  const guarded = withLocalFallback(counters)
  await guarded.reset(key)
  for (let left = inFlight; left > 0; left--) await guarded.increment(key, budget.windowSeconds, budget.attempts)
}

/** `login:email` and an address make `login:email:<SHA-256>`: of one length, and with nothing personal in a shared store. */
export function counterKey(budgetName: string, subject: string): string {
  return `${budgetName}:${createHash('sha256').update(subject, 'utf8').digest('base64url')}`
}
