import type { AuthContext } from '../context'
import type { SessionRecord, SessionStore } from '../store/auth-store'

/**
 * Inserts a new session. If the user then has more than `maxSessionsPerUser` live sessions, revokes the sessions that were unused longest.
 * Call it in the login's transaction, which has locked the user's row. So two parallel logins cannot exceed the limit.
 * @returns the number of revoked sessions
 */
export async function insertWithinLimit({ settings }: AuthContext, sessions: SessionStore, session: SessionRecord): Promise<number> {
  const { maxSessionsPerUser: most } = settings
  if (most > 0 && sessions.insertWithin) return sessions.insertWithin(session, most)
  const ended = most > 0 ? await endUnused(sessions, session, most) : 0
  await sessions.insert(session)
  return ended
}

async function endUnused(sessions: SessionStore, { userId, createdAt: at }: SessionRecord, most: number): Promise<number> {
  const living = await sessions.listForUser(userId, at)
  const unused = living.toSorted(byLastUse).slice(0, Math.max(0, living.length + 1 - most))
  for (const { id } of unused) await sessions.revoke({ id, userId }, at)
  return unused.length
}

/**
 * Orders sessions by last use. If two times are equal, the older session is first, because `listForUser` returns sessions in that order.
 */
function byLastUse(one: SessionRecord, other: SessionRecord): number {
  return one.lastSeenAt.getTime() - other.lastSeenAt.getTime()
}
