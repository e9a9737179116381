import { networkOf, networkTimes } from '../core/client-key'
import type { RateLimit } from './counter-store'
import { type Exhausted, type LimitContext, type TakenUnit, takeUnit, uncounted } from './take-unit'

/**
 * Counts an attempt against a client's rate limit, before the request is handled. An IPv6 client is a /64 network. The /48 network of an
 * IPv6 client counts too, with ten times the limit. Otherwise a customer with a whole /48 network would count as 65,536 clients.
 * @param client `clientOf(req)`; null: nothing is counted, because the address cannot be read
 * @throws the error of `Exhausted`, with details.retry_after_seconds; in that case nothing is counted
 */
export async function takeClientUnit(
  ctx: LimitContext,
  rateLimit: RateLimit | false,
  [name, client]: readonly [name: string, client: string | null],
  Exhausted?: Exhausted,
): Promise<TakenUnit> {
  if (client === null) return uncounted
  const own = await takeUnit(ctx, rateLimit, [name, client], Exhausted)
  const network = networkOf(client)
  if (network === null || rateLimit === false) return own
  try {
    // The network is counted after the client. A rejected client therefore does not use up the limit of its network.
    const shared = await takeUnit(ctx, { ...rateLimit, attempts: rateLimit.attempts * networkTimes }, [name, network], Exhausted)
    return both(own, shared)
  } catch (error) {
    await own.giveBack()
    throw error
  }
}

function both(one: TakenUnit, other: TakenUnit): TakenUnit {
  return {
    giveBack: async () => void (await Promise.all([one.giveBack(), other.giveBack()])),
    // The attempts of the network's other clients stay counted.
    clear: async () => void (await Promise.all([one.clear(), other.giveBack()])),
  }
}
