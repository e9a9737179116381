import type { AuthContext } from '../context'
import { type AppErrorOptions, TooManyRequestsError } from '../errors'
import type { BudgetPair } from '../throttle/budget'
import type { Budget } from '../throttle/counter-store'
import { attempt, clear, counterKey, giveBack } from '../throttle/throttle'

export type LimitContext = Pick<AuthContext, 'counters' | 'events'>
type Exhausted = new (options: AppErrorOptions) => TooManyRequestsError

/** A unit that was taken before what it pays for. */
export interface TakenUnit {
  /** What it paid for did not fail: this unit back, no more. */
  giveBack(): Promise<void>
  /** It succeeded: everything counted under the key is forgotten. */
  clear(): Promise<void>
}

/**
 * Takes one unit of a budget before the check it pays for, so that no burst overshoots (contract section 8). `subject` is
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
  try {
    await attempt(ctx.counters, budget, key, Exhausted)
  } catch (error) {
    if (error instanceof TooManyRequestsError) ctx.events.emit('throttled', { code: error.code, route: routeOf(name) })
    throw error
  }
  return { giveBack: () => giveBack(ctx.counters, budget, key), clear: () => clear(ctx.counters, budget, key) }
}

/**
 * One unit of the client's budget and one of the address's, or neither. `client` null: called without HTTP, nobody is
 * counted. A known address and an unknown one are counted alike.
 */
export async function takeUnits(
  ctx: LimitContext,
  budgets: BudgetPair,
  { name, email, client }: { name: string; email: string; client: string | null },
  Exhausted?: Exhausted,
): Promise<{ email: TakenUnit; client: TakenUnit | null }> {
  const ofClient = client === null ? null : await takeUnit(ctx, budgets.client, [`${name}:client`, client], Exhausted)
  try {
    return { email: await takeUnit(ctx, budgets.email, [`${name}:email`, email], Exhausted), client: ofClient }
  } catch (error) {
    await ofClient?.giveBack()
    throw error
  }
}

/** `route:oauth_callback` and `login:client` are about `oauth_callback` and `login`. */
function routeOf(name: string): string {
  const [first = '', second = ''] = name.split(':')
  return first === 'route' ? second : first
}
