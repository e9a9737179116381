import type { Request } from 'express'
import Joi from 'joi'
import { type AuthContext, transaction } from '../context'
import { NotFoundError, TooManyRequestsError } from '../core/errors'
import { type Answer, done, flag, instant, shape, string, stringOrNull } from '../http/description'
import { text } from '../http/input'
import type { Route } from '../http/routes'
import { sendEmpty, sendJson, setResult } from '../http/send'
import type { SessionKind, SessionRecord } from '../store/auth-store'
import { distrust } from '../trusted-devices/distrust'
import { trustedDevicesOf, trustHashOf } from '../trusted-devices/trust-cookie'
import { clearEndedCookies } from './current-auth'
import { isAlive, type PublicSession, sessionsOf, toPublicSession } from './find-session'
import { revokeOtherSessions } from './log-out'
import { operation } from './operation'
import { sessionOf } from './reauthentication/fresh-session'
import type { RouteGuards } from './routes-by-delivery'
import { cookieOf, setRenewedCookie } from './send-reissued-tokens'

export function sessionListRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  if (!ctx.store.sessions) return []
  // First, because `/sessions/:id` also matches `/sessions/revoke-others` and would answer 405.
  return [...list(ctx, guards), ...endOthers(ctx, guards), ...endOne(ctx, guards)]
}

function list(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'GET',
    path: '/sessions',
    summary: 'List the live sessions of the account, last used first',
    answers: [listedSessions],
    refuses: [TooManyRequestsError],
    access: 'live session',
    limit: 'sessions',
    handle: async (req, res) => {
      const current = ownSession(req)
      const sessions = await listSessions(ctx, current.userId)
      setResult(res, sessions)
      sendJson(
        res,
        200,
        sessions.map((session) => ({ ...sessionBody(session), is_current: session.id === current.id })),
      )
    },
  })
}

function endOne(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'DELETE',
    path: '/sessions/:id',
    summary: 'Revoke one session of the account',
    answers: [done],
    refuses: [NotFoundError, TooManyRequestsError],
    access: 'live session',
    limit: 'sessions',
    handle: async (req, res) => {
      await revokeSession(ctx, ownSession(req).userId, String(req.params['id']))
      await clearEndedCookies(ctx, req, res)
      sendEmpty(res)
    },
  })
}

function endOthers(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'POST',
    path: '/sessions/revoke-others',
    inEachDelivery: true,
    summary: 'Revoke all sessions of the account except this session',
    answers: [done],
    refuses: [TooManyRequestsError],
    access: 'live session',
    limit: 'sessions',
    // If the token has no `sid`, the refresh token identifies the session that stays live.
    body: Joi.object<{ refresh_token?: string }>({ refresh_token: text(4096).optional() }),
    handle: async (req, res, _body, delivery) => {
      const own = ownSession(req)
      const { cookie } = await revokeOtherSessions(ctx, own, cookieOf(ctx, req, delivery), trustHashOf(ctx, req, own.userId))
      await clearEndedCookies(ctx, req, res)
      setRenewedCookie(ctx, res, cookie)
      sendEmpty(res)
    },
  })
}

/** Never null, because these routes exist only if the store keeps sessions. */
function ownSession(req: Request): SessionRecord {
  const session = sessionOf(req)
  if (!session) throw new Error('aliveSession() let a request in without a session')
  return session
}

const listedSessions: Answer = {
  status: 200,
  description: 'The sessions. `kind` is `tokens` or `session`. `ip` and `user_agent` are the values of the login.',
  schema: {
    type: 'array',
    items: shape('ListedSession', {
      id: string,
      kind: { enum: ['tokens', 'session'] },
      created_at: instant,
      last_seen_at: instant,
      expires_at: instant,
      ip: stringOrNull,
      user_agent: stringOrNull,
      amr: { type: 'array', items: string },
      provider: stringOrNull,
      is_current: flag,
    }),
  },
}

export function sessionBody({ id, kind, createdAt, lastSeenAt, expiresAt, ip, userAgent, amr, provider }: PublicSession) {
  return {
    id,
    kind,
    created_at: createdAt.toISOString(),
    last_seen_at: lastSeenAt.toISOString(),
    expires_at: expiresAt.toISOString(),
    ip,
    user_agent: userAgent,
    amr,
    provider,
  }
}

/** Of both kinds, the last used first. */
export async function listSessions(ctx: AuthContext, userId: string): Promise<PublicSession[]> {
  const sessions = await sessionsOf(ctx.store).listForUser(userId, ctx.now())
  return sessions.sort((one, other) => other.lastSeenAt.getTime() - one.lastSeenAt.getTime()).map(toPublicSession)
}

/** Also ends the trust of the session. @throws NotFoundError for another person's session, a session of another kind, an ended session and an invalid id */
export async function revokeSession(ctx: AuthContext, userId: string, id: string, kind?: SessionKind): Promise<void> {
  const sessions = sessionsOf(ctx.store)
  const found = await sessions.find({ id })
  if (!found || !isAlive(found.session, ctx.now())) throw new NotFoundError()
  const revoke = async (ctx: AuthContext) => {
    if (!(await sessionsOf(ctx.store).revoke({ id, userId, ...(kind && { kind }) }, ctx.now()))) throw new NotFoundError()
    await distrust(ctx, userId, { reason: 'session_ended', sessionId: id })
  }
  await (trustedDevicesOf(ctx) ? transaction(ctx, revoke) : revoke(ctx))
  ctx.events.emit('session.revoked', { userId, count: 1 })
}
