import { randomUUID } from 'node:crypto'
import type { AuthContext } from '../context'
import { amrToText } from '../core/amr'
import { readAddress } from '../core/client-key'
import { hashOpaqueToken } from '../core/opaque-token'
import type { SessionKind, SessionRecord, SessionStore, UserRecord } from '../store/auth-store'
import { after, earlier, makeSessionToken } from './find-session'
import type { Login, SessionOrigin } from './login'

export interface StartedSession {
  readonly session: SessionRecord
  /** The token itself. The response sends it once, and doorward never stores it. */
  readonly token: string
  /** The number of other sessions of this user that doorward revoked because of the limit `maxSessionsPerUser`. */
  readonly endedByLimit: number
}

/**
 * Inserts the row of a new session, always with a new id and a new token (against session fixation). Call it in the login's transaction,
 * which has locked the user's row. So a parallel revocation of the user's sessions runs before or after this insert.
 */
export async function startSession(
  ctx: AuthContext,
  sessions: SessionStore,
  kind: SessionKind,
  user: Pick<UserRecord, 'id'>,
  login: Login,
  origin: SessionOrigin,
): Promise<StartedSession> {
  const now = ctx.now()
  const id = randomUUID()
  const token = makeSessionToken(ctx.keys['session-token'], kind, { id, generation: 0 })
  const { idleSeconds, maxSeconds } = lifetimeOf(ctx, kind)
  const endsAt = after(now, maxSeconds)
  const session: SessionRecord = {
    id,
    userId: user.id,
    kind,
    tokenHash: hashOpaqueToken(token),
    generation: 0,
    rotatedAt: null,
    amr: amrToText(login.amr),
    authenticatedAt: login.isYoung ? null : now,
    isPersistent: login.isPersistent ?? true,
    ip: plainText(readAddress(origin.ip) ?? origin.ip, 45),
    userAgent: plainText(origin.userAgent, 512),
    provider: login.provider,
    providerSid: login.providerSid ?? null,
    createdAt: now,
    lastSeenAt: now,
    expiresAt: earlier(after(now, idleSeconds), endsAt),
    endsAt,
    revokedAt: null,
  }
  return { session, token, endedByLimit: await insertWithinLimit(ctx, sessions, session) }
}

function lifetimeOf({ settings }: AuthContext, kind: SessionKind): { idleSeconds: number; maxSeconds: number } {
  return kind === 'tokens'
    ? { idleSeconds: settings.refreshTokenTtlSeconds, maxSeconds: settings.refreshFamilyTtlSeconds }
    : { idleSeconds: settings.sessionTtlSeconds, maxSeconds: settings.sessionMaxSeconds }
}

/**
 * Returns the text shortened, and without control characters. This is necessary, because a client can send any header, and a person reads
 * the text in a list.
 */
export function plainText(value: string | null | undefined, maxLength: number): string | null {
  const visible = [...(value ?? '').replace(/[\p{Cc}\p{Cf}\p{Surrogate}\p{Zl}\p{Zp}]/gu, '')]
  return visible.slice(0, maxLength).join('').trim() || null
}

/**
 * Inserts a new session. If the user then has more than `maxSessionsPerUser` live sessions, revokes the sessions that were unused longest.
 * Call it in the login's transaction, which has locked the user's row. So two parallel logins cannot exceed the limit.
 * @returns the number of revoked sessions
 */
async function insertWithinLimit({ settings }: AuthContext, sessions: SessionStore, session: SessionRecord): Promise<number> {
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
