import { type AuthContext, transaction } from '../context'
import { sessionsOf } from './find-session'
import { endOtherSessions } from './log-out'
import { type AskingSession, holdSession } from './reauthentication/fresh-session'
import { type CookieOfRequest, type RenewedCookie, renewCookie } from './reissue-tokens'

/**
 * Revokes all sessions of a person except one. Also invalidates what the revoked sessions began: changes of the address, and tickets.
 * @param session the caller's session, which stays live; if this session has ended meanwhile, nothing is revoked
 * @param cookie the cookie of the request; its value is replaced
 * @returns the number of revoked sessions, and the new value of the cookie
 * @throws InvalidTokenError
 */
export async function revokeOtherSessions(
  ctx: AuthContext,
  session: AskingSession,
  cookie: CookieOfRequest | null = null,
): Promise<{ count: number; cookie: RenewedCookie | null }> {
  const { userId } = session
  const revoked = await transaction(ctx, async (ctx) => {
    await ctx.store.users.lock(userId)
    const held = await holdSession(ctx, session)
    const living = await sessionsOf(ctx.store).listForUser(userId, ctx.now())
    await endOtherSessions(ctx, userId, { sessionId: session.id })
    return { count: living.length - 1, cookie: await renewCookie(ctx, held, cookie) }
  })
  ctx.events.emit('session.revoked', { userId, count: revoked.count })
  return revoked
}
