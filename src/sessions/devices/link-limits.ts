import type { AuthContext } from '../../context'
import { TooManyRequestsError } from '../../core/errors'
import { takeUnits } from '../../rate-limits/take-of-each'
import { attempt, counterKey } from '../../rate-limits/throttle'
import { findKnownDevice, type KnownDevice, type PresentedDevice } from './known-device'

interface LinkRequest {
  /** The name of the rate limit. */
  readonly name: string
  /** The address in lower case. */
  readonly email: string
  readonly client: string | null
  readonly presented: PresentedDevice
}

/**
 * Counts a request for a link. A known device has a separate limit of five requests. For other clients, and beyond that limit, the function
 * counts against the limits of the client and the address.
 * @returns the known device, which also has a separate limit of mails; null for an unknown client
 * @throws TooManyRequestsError
 */
export async function takeLinkRequest(ctx: AuthContext, { name, email, client, presented }: LinkRequest): Promise<KnownDevice | null> {
  const device = await findKnownDevice(ctx, email, presented)
  if (device && (await hasRequestLeft(ctx, name, email, device))) return device
  await takeUnits(ctx, ctx.rateLimits.links, { name, email, client })
  return null
}

/**
 * Counts a request against the limit of the known device. Returns false if that limit is reached. The function then emits no event, because
 * the caller also counts the request against the other limits.
 */
async function hasRequestLeft(ctx: AuthContext, name: string, email: string, { id }: KnownDevice): Promise<boolean> {
  try {
    await attempt(ctx.counters, ctx.rateLimits.device.links, counterKey(`${name}:device`, `${id} ${email}`), TooManyRequestsError)
    return true
  } catch (error) {
    if (error instanceof TooManyRequestsError) return false
    throw error
  }
}
