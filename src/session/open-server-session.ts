import { randomUUID } from 'node:crypto'
import { amrToText } from '../amr'
import type { AuthContext } from '../context'
import { hashOpaqueToken, newOpaqueToken } from '../opaque-token'
import type { LoginChallenge, OpenedSession, OpenSession } from './finish-login'
import { after } from './refresh-token'
import { findBySessionToken, sessionsOf } from './server-session'

/** Where a session is opened from: what its owner recognises it by, and what it takes the place of. */
export interface SessionOrigin {
  /** Kept to 45 characters. */
  ip?: string | null | undefined
  /** Kept to 512 characters. */
  userAgent?: string | null | undefined
  /** The value of the session cookie that came along: that session ends, whosever it is, and its value is never used again. */
  sessionToken?: string | null | undefined
}

/** A login that ended in a server-side session. */
export interface OpenedServerSession extends OpenedSession {
  /** Names the session in lists; opens nothing. */
  sessionId: string
  /** The cookie's value: handed out once, never stored. */
  sessionToken: string
  expiresAt: Date
}

export type SessionLoginResult = OpenedServerSession | LoginChallenge

/**
 * For `finishLogin`: a session kept in a row and a cookie, instead of tokens. Under a new value at every login, whatever was
 * presented (fixation), and inserted in the unit that holds the user's row: what ends sessions waits for it, or wins.
 */
export function openServerSession({ ip, userAgent, sessionToken: presented }: SessionOrigin): OpenSession<OpenedServerSession> {
  return async (ctx, user, amr) => {
    if (presented) await endPresented(ctx, presented)
    const sessionToken = newOpaqueToken()
    const now = ctx.now()
    const session = {
      id: randomUUID(),
      userId: user.id,
      sessionHash: hashOpaqueToken(sessionToken),
      amr: amrToText(amr),
      ip: plainText(ip, 45),
      userAgent: plainText(userAgent, 512),
      createdAt: now,
      lastSeenAt: now,
      expiresAt: after(now, ctx.settings.sessionTtlSeconds),
    }
    await sessionsOf(ctx.store).insert(session)
    return { kind: 'session', userId: user.id, amr, sessionId: session.id, sessionToken, expiresAt: session.expiresAt }
  }
}

/** The browser is about to forget it: nobody could end it by its cookie any more. */
async function endPresented(ctx: AuthContext, presented: string): Promise<void> {
  const sessions = sessionsOf(ctx.store)
  const found = await findBySessionToken(sessions, presented)
  if (found) await sessions.delete(found.session.userId, found.session.id)
}

/** A header is whatever somebody sent, and a person reads it in a list: nothing that moves a cursor, turns a line or fills a table. */
function plainText(value: string | null | undefined, maxLength: number): string | null {
  const visible = [...(value ?? '').replace(/[\p{Cc}\p{Cf}\p{Surrogate}\p{Zl}\p{Zp}]/gu, '')]
  return visible.slice(0, maxLength).join('').trim() || null
}
