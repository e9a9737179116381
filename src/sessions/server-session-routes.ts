import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { NotFoundError } from '../core/errors'
import { type Description, done, flag, instant, shape, string, stringOrNull } from '../http/description'
import type { Route } from '../http/routes'
import { sameSite } from '../http/same-site'
import { sendEmpty, sendJson } from '../http/send'
import { clearSessionCookie } from './cookies'
import { getSession, getUser } from './current-auth'
import type { PublicSession } from './find-session'
import { listSessions, revokeSession } from './list-routes'
import { type LogoutRules, logoutOfSession } from './log-out-request'
import type { RouteGuards } from './routes-by-delivery'

/** A cookie is the only credential, so every route that changes data rejects requests from other sites. */
export function serverSessionRoutes(ctx: AuthContext, guards: RouteGuards, rules: LogoutRules): Route[] {
  if (!ctx.store.sessions) return []
  const signedIn = guards.requireSession()
  const ownSite = sameSite(ctx)
  return [
    {
      method: 'GET',
      path: '/session/me',
      describes: describesMe,
      before: [signedIn],
      handle: (req, res) => sendJson(res, 200, meBody(req)),
    },
    { method: 'GET', path: '/session/list', describes: describesList, before: [signedIn], handle: (req, res) => list(ctx, req, res) },
    logoutOfSession(ctx, rules),
    // Last, because `:id` also matches the literal paths.
    {
      method: 'DELETE',
      path: '/session/:id',
      describes: describesEnd,
      before: [ownSite, signedIn],
      handle: (req, res) => end(ctx, req, res),
    },
  ]
}

const sessionFields = { created_at: instant, last_seen_at: instant, expires_at: instant, ip: stringOrNull, user_agent: stringOrNull }
const describesMe: Description = {
  summary: 'Get the session of this browser',
  answers: [
    {
      status: 200,
      description: 'The session.',
      schema: shape('OwnSession', { user_id: string, email: string, amr: { type: 'array', items: string }, ...sessionFields }),
    },
  ],
}
const describesList: Description = {
  summary: 'List the live sessions of the account',
  answers: [
    {
      status: 200,
      description: 'The sessions.',
      schema: { type: 'array', items: shape('Session', { id: string, ...sessionFields, is_current: flag }) },
    },
  ],
}
const describesEnd: Description = { summary: 'Revoke one session of the account', answers: [done], refuses: [NotFoundError] }

async function list(ctx: AuthContext, req: Request, res: Response): Promise<void> {
  const current = getSession(req)
  const sessions = (await listSessions(ctx, current.userId)).filter(({ kind }) => kind === 'session')
  const oldestFirst = sessions.sort((one, other) => one.createdAt.getTime() - other.createdAt.getTime())
  const items = oldestFirst.map((session) => ({ id: session.id, ...commonBody(session), is_current: session.id === current.id }))
  sendJson(res, 200, items)
}

async function end(ctx: AuthContext, req: Request, res: Response): Promise<void> {
  const current = getSession(req)
  const id = String(req.params['id'])
  await revokeSession(ctx, current.userId, id, 'session')
  if (id === current.id) clearSessionCookie(ctx, res)
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
