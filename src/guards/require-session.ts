import type { Request, Response } from 'express'
import { AppError, ConfigurationError, ServiceUnavailableError, UnauthorizedError } from '../errors'
import { findLiveSession, type LiveSession, type SessionContext, toPublicSession } from '../session/find-session'
import { readSessionCookie, setSessionCookie } from '../session/session-cookie'
import { toPublicUser } from '../store/public-user'
import { rememberAuth } from './current-auth'
import type { GuardContext } from './guards'

/**
 * A live session by its cookie, with its user, in one query; once a minute it is moved on, and the cookie sent again.
 * Whatever is wrong with it, the account included, is one and the same 401.
 */
export function requireSession(ctx: GuardContext): (req: Request, res: Response) => Promise<void> {
  const sessions = ctx.store?.sessions
  if (!sessions)
    throw new ConfigurationError(
      'requireSession() reads the session table: pass a `store` that has `sessions`; createKnexStore({ knex }) does.',
    )
  return async (req, res) => {
    const token = readSessionCookie(ctx, req)
    const live = token === null ? null : await find({ ...ctx, sessions }, token)
    if (token === null || live === null) throw new UnauthorizedError()
    rememberAuth(req, { claims: null, user: toPublicUser(live.user), session: toPublicSession(live.session) })
    if (live.hasSlid) sendAgain(ctx, res, token, live.session.expiresAt)
  }
}

/** An adapter that fails tells us nothing about the session: closed, and worth trying again. */
async function find(ctx: SessionContext, token: string): Promise<LiveSession | null> {
  try {
    return await findLiveSession(ctx, token)
  } catch (error) {
    throw error instanceof AppError ? error : new ServiceUnavailableError({ cause: error })
  }
}

/** On an answer of the host's: no shared cache may keep a Set-Cookie, and hand one person's session to the next. */
function sendAgain(ctx: GuardContext, res: Response, token: string, expiresAt: Date): void {
  if (res.headersSent) return // the host has answered while we were asking
  setSessionCookie(ctx, res, token, expiresAt)
  res.setHeader('Cache-Control', 'no-store')
}
