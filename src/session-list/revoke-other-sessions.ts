import { type AuthContext, unitOfWork } from '../context'
import { sessionsOf } from '../session/find-session'
import { endOtherSessions } from '../session/log-out'
import { holdSession } from '../step-up/fresh-session'
import type { SessionRecord } from '../store/auth-store'

/**
 * Revokes all sessions of a person except one. Also invalidates what the revoked sessions began: changes of the address, and tickets.
 * Returns the number of revoked sessions.
 * @param session the caller's session, which stays live; if this session has ended meanwhile, nothing is revoked
 * @throws InvalidTokenError
 */
export async function revokeOtherSessions(ctx: AuthContext, session: Pick<SessionRecord, 'id' | 'userId'>): Promise<number> {
  const { userId } = session
  const count = await unitOfWork(ctx, async (ctx) => {
    await ctx.store.users.lock(userId)
    await holdSession(ctx, session)
    const living = await sessionsOf(ctx.store).listForUser(userId, ctx.now())
    await endOtherSessions(ctx, userId, { sessionId: session.id })
    return living.length - 1
  })
  ctx.events.emit('session.revoked', { userId, count })
  return count
}
