import type { AuthContext } from '../context'
import { NotFoundError } from '../core/errors'
import type { SessionKind } from '../store/auth-store'
import { isAlive, type PublicSession, sessionsOf, toPublicSession } from './find-session'

/** Returns a person's live sessions of both kinds, the last used first. */
export async function listSessions(ctx: AuthContext, userId: string): Promise<PublicSession[]> {
  const sessions = await sessionsOf(ctx.store).listForUser(userId, ctx.now())
  return sessions.sort((one, other) => other.lastSeenAt.getTime() - one.lastSeenAt.getTime()).map(toPublicSession)
}

/**
 * Revokes one session of a person by the id of the list.
 * @throws NotFoundError for another person's session, a session of another kind, an ended session and an invalid id
 */
export async function revokeSession(ctx: AuthContext, userId: string, id: string, kind?: SessionKind): Promise<void> {
  const sessions = sessionsOf(ctx.store)
  const found = await sessions.find({ id })
  if (!found || !isAlive(found.session, ctx.now())) throw new NotFoundError()
  if (!(await sessions.revoke({ id, userId, ...(kind && { kind }) }, ctx.now()))) throw new NotFoundError()
  ctx.events.emit('session.revoked', { userId, count: 1 })
}
