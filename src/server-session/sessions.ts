import type { AuthContext } from '../context'
import { NotFoundError } from '../errors'
import { type PublicUser, toPublicUser } from '../guards/public-user'
import { findLiveSession, isLive, type PublicSession, sessionsOf, toPublicSession } from '../session/server-session'

/** A session that is alive, and whose it is. */
export interface FoundSession {
  session: PublicSession
  user: PublicUser
  /** It was moved on just now: send the cookie again, or the browser drops it at the end it knows. */
  hasSlid: boolean
}

/** The session behind a cookie's value, moved on as `requireSession` does. Null: there is no such live session. */
export async function findSession(ctx: AuthContext, sessionToken: string): Promise<FoundSession | null> {
  const found = await findLiveSession({ ...ctx, sessions: sessionsOf(ctx.store) }, sessionToken)
  return found && { session: toPublicSession(found.session), user: toPublicUser(found.user), hasSlid: found.hasSlid }
}

/** A person's own live sessions, oldest first. */
export async function listSessions(ctx: AuthContext, userId: string): Promise<PublicSession[]> {
  const sessions = await sessionsOf(ctx.store).listForUser(userId)
  return sessions.filter((session) => isLive(session, ctx.now())).map(toPublicSession)
}

/**
 * Ends one session of this person, by the id of the list. Another person's, an unknown one and what is no id at all are
 * one refusal.
 * @throws NotFoundError
 */
export async function revokeSession(ctx: AuthContext, userId: string, sessionId: string): Promise<void> {
  if (!(await sessionsOf(ctx.store).delete(userId, sessionId))) throw new NotFoundError()
  ctx.events.emit('session.revoked', { userId, count: 1 })
}
