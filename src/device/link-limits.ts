import type { AuthContext } from '../context'
import { TooManyRequestsError } from '../errors'
import { takeUnits } from '../limits/take-of-each'
import { attempt, counterKey } from '../throttle/throttle'
import { findKnownDevice, type KnownDevice, type ShownDevice } from './known-device'

interface LinkRequest {
  /** Of the rate limit. */
  readonly name: string
  /** In lower case. */
  readonly email: string
  readonly client: string
  readonly shown: ShownDevice
}

/**
 * Takes what a request for a link may use: of a known device its own five requests, and otherwise, or when these are used up, of the
 * client's and the address's.
 * @returns the known device, which has mails of its own as well; null: an unknown client
 * @throws TooManyRequestsError
 */
export async function takeLinkRequest(ctx: AuthContext, { name, email, client, shown }: LinkRequest): Promise<KnownDevice | null> {
  const device = await findKnownDevice(ctx, email, shown)
  if (device && (await hasRequestLeft(ctx, name, email, device))) return device
  await takeUnits(ctx, ctx.budgets.links, { name, email, client })
  return null
}

/** Without telling anybody: when they are used up, the other limits decide. */
async function hasRequestLeft(ctx: AuthContext, name: string, email: string, { id }: KnownDevice): Promise<boolean> {
  try {
    await attempt(ctx.counters, ctx.budgets.device.links, counterKey(`${name}:device`, `${id} ${email}`), TooManyRequestsError)
    return true
  } catch (error) {
    if (error instanceof TooManyRequestsError) return false
    throw error
  }
}
