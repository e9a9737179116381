import type { AuthContext } from '../context'
import type { SessionRecord, SessionStore } from '../store/auth-store'

/**
 * Inserts a new session, and revokes the user's sessions that were unused longest, so that at most `maxSessionsPerUser` are live. It runs in
 * the transaction of the login, which has locked the user's row, so two parallel logins cannot exceed the limit.
 * @returns how many sessions it revoked
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

/** Orders sessions by last use. Of two with the same time the older one is first, because `listForUser` returns them in that order. */
function byLastUse(one: SessionRecord, other: SessionRecord): number {
  return one.lastSeenAt.getTime() - other.lastSeenAt.getTime()
}
