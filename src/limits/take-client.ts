import { networkOf, networkTimes } from '../throttle/client-key'
import type { Budget } from '../throttle/counter-store'
import { type Exhausted, type LimitContext, type TakenUnit, takeUnit } from './take-unit'

/**
 * Takes one unit of a client's budget before what it pays for. An IPv6 client is its /64, and a unit of its /48 is taken too, of a budget
 * ten times as large: one customer can get a whole /48 and count as 65,536 clients otherwise.
 * @param client `clientKey(req.ip)`
 * @throws what `Exhausted` makes, with details.retry_after_seconds; then nothing is taken
 */
export async function takeClientUnit(
  ctx: LimitContext,
  budget: Budget | false,
  [name, client]: readonly [name: string, client: string],
  Exhausted?: Exhausted,
): Promise<TakenUnit> {
  const own = await takeUnit(ctx, budget, [name, client], Exhausted)
  const network = networkOf(client)
  if (network === null || budget === false) return own
  try {
    // After the client's own: what is refused there takes nothing from its neighbours.
    const shared = await takeUnit(ctx, { ...budget, attempts: budget.attempts * networkTimes }, [name, network], Exhausted)
    return both(own, shared)
  } catch (error) {
    await own.giveBack()
    throw error
  }
}

function both(one: TakenUnit, other: TakenUnit): TakenUnit {
  return {
    giveBack: async () => void (await Promise.all([one.giveBack(), other.giveBack()])),
    // What others of the network used stays used.
    clear: async () => void (await Promise.all([one.clear(), other.giveBack()])),
  }
}
