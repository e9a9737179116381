import { type AuthContext, transaction } from '../context'
import { endOtherSessions } from '../sessions/log-out'
import { type ActingAdmin, lockTarget } from './lock-target'
import { recordTrace } from './record-trace'

/**
 * Activates a pending or deactivated account. Does not verify the address: `emailVerifiedAt` stays unchanged. Revoked sessions and links
 * stay revoked. If a host only cleared `is_active` in the table, the account still has valid sessions and links. The function revokes these
 * too.
 * @throws NotFoundError, ForbiddenError
 */
export async function activateUser(ctx: AuthContext, userId: string, acting?: ActingAdmin): Promise<void> {
  const wasClosed = await transaction(ctx, async (ctx) => {
    const now = ctx.now()
    const user = await lockTarget(ctx, userId, acting)
    if (user.isActive) return false
    await ctx.store.users.update(userId, { isActive: true, activatedAt: now, updatedAt: now })
    await ctx.store.userTokens.consumeAllForUser(userId, now)
    await recordTrace(ctx, user)
    await endOtherSessions(ctx, userId)
    return true
  })
  if (wasClosed) ctx.events.emit('activation', { userId })
}
