import type { AuthContext } from '../context'
import { NotFoundError } from '../errors'
import { isAlive, type PublicSession, sessionsOf, toPublicSession } from './find-session'

/** Returns a person's living server-side sessions, oldest first. */
export async function listSessions(ctx: AuthContext, userId: string): Promise<PublicSession[]> {
  const sessions = await sessionsOf(ctx.store).listForUser(userId, ctx.now())
  return sessions.filter(({ kind }) => kind === 'session').map(toPublicSession)
}

/**
 * Ends one server-side session of this person, by the id of the list. Another person's, an unknown one and what is no id at all are
 * one refusal.
 * @throws NotFoundError
 */
export async function revokeSession(ctx: AuthContext, userId: string, sessionId: string): Promise<void> {
  const sessions = sessionsOf(ctx.store)
  const found = await sessions.find({ id: sessionId })
  if (!found || !isAlive(found.session, ctx.now())) throw new NotFoundError()
  if (!(await sessions.revoke({ id: sessionId, userId, kind: 'session' }, ctx.now()))) throw new NotFoundError()
  ctx.events.emit('session.revoked', { userId, count: 1 })
}
