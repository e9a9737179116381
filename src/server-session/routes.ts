import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { getSession, getUser } from '../guards/current-auth'
import type { Guards } from '../guards/guards'
import { type Route, step, withBody } from '../http/routes'
import { refuseCrossSite } from '../http/same-site'
import { sendEmpty, sendJson } from '../http/send'
import type { OnLogout } from '../session/routes'
import type { PublicSession } from '../session/server-session'
import { clearSessionCookie, readSessionCookie } from '../session/session-cookie'
import { logOutSession } from './log-out-session'
import { listSessions, revokeSession } from './sessions'

/**
 * Sessions kept in rows, for browsers; their logins are with the other logins. Nothing here without a table for them.
 * Every line that changes something refuses other sites: a cookie is all it goes by.
 */
export function serverSessionRoutes(ctx: AuthContext, guards: Guards, onLogout: OnLogout): Route[] {
  if (!ctx.store.sessions) return []
  const signedIn = guards.requireSession()
  const sameSite = step((req) => refuseCrossSite(ctx.settings, req))
  return [
    { method: 'GET', path: '/session/me', before: [signedIn], handle: (req, res) => sendJson(res, 200, meBody(req)) },
    { method: 'GET', path: '/session/list', before: [signedIn], handle: (req, res) => list(ctx, req, res) },
    withBody({
      method: 'POST',
      path: '/session/logout',
      before: [sameSite],
      body: Joi.object<{ all_sessions: boolean }>({ all_sessions: Joi.boolean().optional().default(false) }),
      handle: async (req, res, body) => {
        const token = readSessionCookie(ctx.settings, req)
        if (token !== null) await logOutSession(ctx, token, { allSessions: body.all_sessions })
        await onLogout(req, res)
        clearSessionCookie(ctx.settings, res)
        sendEmpty(res)
      },
    }),
    // After the literal paths, which are no ids.
    { method: 'DELETE', path: '/session/:id', before: [sameSite, signedIn], handle: (req, res) => end(ctx, req, res) },
  ]
}

async function list(ctx: AuthContext, req: Request, res: Response): Promise<void> {
  const current = getSession(req)
  const sessions = await listSessions(ctx, current.userId)
  const items = sessions.map((session) => ({ id: session.id, ...commonBody(session), is_current: session.id === current.id }))
  sendJson(res, 200, items)
}

async function end(ctx: AuthContext, req: Request, res: Response): Promise<void> {
  const current = getSession(req)
  const id = String(req.params['id'])
  await revokeSession(ctx, current.userId, id)
  if (id === current.id) clearSessionCookie(ctx.settings, res)
  sendEmpty(res)
}

function meBody(req: Request): object {
  const session = getSession(req)
  return { user_id: session.userId, email: getUser(req).email, amr: session.amr, ...commonBody(session) }
}

function commonBody({ createdAt, lastSeenAt, expiresAt, ip, userAgent }: PublicSession) {
  return {
    created_at: createdAt.toISOString(),
    last_seen_at: lastSeenAt.toISOString(),
    expires_at: expiresAt.toISOString(),
    ip,
    user_agent: userAgent,
  }
}
