import type { Request, Response } from 'express'
import { UnauthorizedError } from '../errors'
import { findLiveSession, toPublicSession } from '../session/find-session'
import { readSessionCookie } from '../session/session-cookie'
import { toPublicUser } from '../store/public-user'
import { closed, sendAgain, sessionsFor } from './by-session-cookie'
import { readCredential } from './credentials'
import { rememberAuth } from './current-auth'
import type { GuardContext } from './guards'

/**
 * A live session by its cookie, with its user, in one query; once a minute it is moved on, and the cookie sent again.
 * Whatever is wrong with it, the account included, is one and the same 401.
 */
export function requireSession(ctx: GuardContext): (req: Request, res: Response) => Promise<void> {
  const sessions = sessionsFor(ctx, 'requireSession()')
  return async (req, res) => {
    if (ctx.settings.tokenDelivery === 'session') readCredential(ctx, req) // a Bearer header is never ignored there
    const token = readSessionCookie(ctx, req)
    const live = token === null ? null : await closed(() => findLiveSession({ ...ctx, sessions }, token))
    if (token === null || live === null) throw new UnauthorizedError({ reason: token === null ? 'nobody_signed_in' : 'session_over' })
    rememberAuth(req, { claims: null, user: toPublicUser(live.user), session: toPublicSession(live.session) })
    if (live.hasSlid) sendAgain(ctx, res, token, live)
  }
}
