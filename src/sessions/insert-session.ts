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
  readonly token: string
  /** Other sessions that `maxSessionsPerUser` revoked. */
  readonly endedByLimit: number
}

/** Always new (against session fixation). Call it with the user's row locked: a revocation then runs before or after it. */
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

/** A client can send any header, and a person reads the text in a list. */
export function plainText(value: string | null | undefined, maxLength: number): string | null {
  const visible = [...(value ?? '').replace(/[\p{Cc}\p{Cf}\p{Surrogate}\p{Zl}\p{Zp}]/gu, '')]
  return visible.slice(0, maxLength).join('').trim() || null
}

/**
 * Above `maxSessionsPerUser`, revokes the sessions that were unused longest. Call it in the login's transaction, which has locked the
 * user's row: two parallel logins cannot exceed the limit.
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

/** If two times are equal, the older session is first: `listForUser` returns sessions in that order. */
function byLastUse(one: SessionRecord, other: SessionRecord): number {
  return one.lastSeenAt.getTime() - other.lastSeenAt.getTime()
}
