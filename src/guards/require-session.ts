import type { Request, Response } from 'express'
import { UnauthorizedError } from '../core/errors'
import { readCredential } from '../sessions/credentials'
import { rememberAuth } from '../sessions/current-auth'
import { findLiveSession, toPublicSession } from '../sessions/find-session'
import { readSessionCookie } from '../sessions/session-cookie'
import { toPublicUser } from '../store/public-user'
import { failClosed, sendAgain, sessionsFor } from './by-session-cookie'
import type { GuardContext } from './guard-context'

/**
 * Requires a live session by its cookie, and loads the user of the session. The guard needs one query for the session and the user. Once a
 * minute, the guard extends the session and sends the cookie again. Every failure is the same 401, also for an inactive account.
 */
export function requireSession(ctx: GuardContext): (req: Request, res: Response) => Promise<void> {
  const sessions = sessionsFor(ctx, 'requireSession()')
  return async (req, res) => {
    if (ctx.settings.tokenDelivery === 'session') readCredential(ctx, req) // rejects a Bearer header
    const token = readSessionCookie(ctx, req)
    const live = token === null ? null : await failClosed(() => findLiveSession({ ...ctx, sessions }, token))
    if (token === null || live === null) throw new UnauthorizedError({ reason: token === null ? 'nobody_signed_in' : 'session_over' })
    rememberAuth(req, { claims: null, user: toPublicUser(live.user), session: toPublicSession(live.session) })
    if (live.hasSlid) sendAgain(ctx, res, token, live)
  }
}
