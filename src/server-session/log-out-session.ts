import { type AuthContext, unitOfWork } from '../context'
import { endSessions } from '../session/log-out'
import { findBySessionToken, isLive, sessionsOf } from '../session/server-session'

/**
 * Ends the session behind a cookie's value, or everything its user is signed in with. Idempotent, and silent about values
 * nobody knows. One that has expired ends nothing more.
 */
export async function logOutSession(ctx: AuthContext, sessionToken: string, options: { allSessions?: boolean } = {}): Promise<void> {
  const sessions = sessionsOf(ctx.store)
  const found = await findBySessionToken(sessions, sessionToken)
  if (!found) return
  const { id, userId } = found.session
  const allSessions = options.allSessions === true && isLive(found.session, ctx.now())
  const ended = allSessions ? await unitOfWork(ctx, (ctx) => endSessions(ctx, userId)) : Number(await sessions.delete(userId, id))
  if (ended > 0) ctx.events.emit('logout', { userId, allSessions })
}
