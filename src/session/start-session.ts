import { randomUUID } from 'node:crypto'
import { amrToText } from '../amr'
import type { AuthContext } from '../context'
import { hashOpaqueToken } from '../opaque-token'
import type { SessionKind, SessionRecord, SessionStore, UserRecord } from '../store/auth-store'
import type { Login } from './finish-login'
import { after, earlier } from './instants'
import { insertWithinLimit } from './limit-sessions'
import { makeSessionToken } from './session-token'

/** Where a session is opened from: what its owner recognises it by, and what it takes the place of. */
export interface SessionOrigin {
  /** Kept to 45 characters. */
  ip?: string | null | undefined
  /** Kept to 512 characters. */
  userAgent?: string | null | undefined
  /** The session cookie of the request. A login that opens a server-side session revokes that one, of any account. */
  sessionToken?: string | null | undefined
}

export interface StartedSession {
  readonly session: SessionRecord
  /** The plaintext: handed out once, never stored. */
  readonly token: string
  /** Other sessions of the user that this one took the place of, by `maxSessionsPerUser`. */
  readonly endedByLimit: number
}

/**
 * Inserts the row of a new session, always with a new id and token (session fixation). Runs in the transaction of the login, which holds the
 * user's row: whatever ends the user's sessions waits for it, or comes first.
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
    ip: plainText(origin.ip, 45),
    userAgent: plainText(origin.userAgent, 512),
    provider: login.provider,
    providerSid: null,
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

/** A header is whatever somebody sent, and a person reads it in a list: no control characters, and not more than a line. */
export function plainText(value: string | null | undefined, maxLength: number): string | null {
  const visible = [...(value ?? '').replace(/[\p{Cc}\p{Cf}\p{Surrogate}\p{Zl}\p{Zp}]/gu, '')]
  return visible.slice(0, maxLength).join('').trim() || null
}
