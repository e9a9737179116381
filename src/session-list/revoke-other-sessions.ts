import { type AuthContext, unitOfWork } from '../context'
import { sessionsOf } from '../session/find-session'
import { endOtherSessions } from '../session/log-out'
import { holdSession } from '../step-up/fresh-session'
import type { SessionRecord } from '../store/auth-store'

/**
 * Ends all sessions of the person but one, and with them what was begun in them: changes of the address, and tickets. Returns how many ended.
 * @param session the one that asks: it goes on, and nothing ends where it has ended itself meanwhile
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
