import { type AuthContext, transaction } from '../context'
import { endOtherSessions } from '../sessions/log-out'
import { type ActingAdmin, lockTarget } from './lock-target'

/**
 * Revokes every session of an account: token sessions and server-side sessions. Returns the number of live sessions that were revoked, and
 * 0 for an unknown account.
 * @throws NotFoundError, ForbiddenError; the function throws them only if an administrator acts
 */
export async function revokeSessions(ctx: AuthContext, userId: string, acting?: ActingAdmin): Promise<number> {
  const count = await transaction(ctx, async (ctx) => {
    if (!acting) await ctx.store.users.lock(userId)
    else await lockTarget(ctx, userId, acting)
    const living = await ctx.store.sessions?.listForUser(userId, ctx.now())
    await endOtherSessions(ctx, userId)
    return living?.length ?? 0
  })
  ctx.events.emit('session.revoked', { userId, count })
  return count
}
