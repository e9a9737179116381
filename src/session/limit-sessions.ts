import type { AuthContext } from '../context'
import type { SessionRecord, SessionStore } from '../store/auth-store'

/**
 * Inserts a new session, and ends those of its user that were unused longest, so that `maxSessionsPerUser` are left. Runs in the
 * transaction of the login, which holds the user's row: two logins at once cannot pass the limit together.
 * @returns how many sessions it ended
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

/** Of two that were used at the same moment the older one comes first, as `listForUser` orders them. */
function byLastUse(one: SessionRecord, other: SessionRecord): number {
  return one.lastSeenAt.getTime() - other.lastSeenAt.getTime()
}
