import type { AuthContext } from '../context'
import type { AuthEventPayloads } from '../core/events'
import type { TrustedDeviceChoice } from '../store/auth-store'
import { trustedDevicesOf } from './trust-cookie'

export interface Distrust extends TrustedDeviceChoice {
  readonly reason: AuthEventPayloads['device.untrusted']['reason']
  /** The administrator who causes it. */
  readonly actorId?: string
}

/**
 * Deletes the chosen trusts of the account, and by default all. Call it inside the transaction of the change: the events follow after the
 * commit. Returns how many.
 */
export async function distrust(ctx: AuthContext, userId: string, { reason, actorId, ...choice }: Distrust): Promise<number> {
  const count = (await trustedDevicesOf(ctx)?.deleteForUser(userId, choice)) ?? 0
  const what = { userId, reason, ...(actorId !== undefined && { actorId }) }
  for (let told = 0; told < count; told++) ctx.events.emit('device.untrusted', what)
  return count
}
