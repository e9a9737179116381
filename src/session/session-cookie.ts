import type { Request, Response } from 'express'
import type { GuardSettings } from '../config/guard-settings'
import type { AuthContext } from '../context'
import { clearCookie, readCookie, setCookie } from '../http/cookies'
import { type Answer, instant, type JsonSchema, shape, string } from '../http/description'
import { sendJson } from '../http/send'
import { forgetCsrfBinding } from './csrf-binding'
import { loginSchema, returnToOf, sendLogin } from './delivery'
import type { SessionLoginResult } from './open-session'
import type { SessionOrigin } from './start-session'

const sessionFields = shape('SessionLogin', { user_id: string, expires_at: instant })

const sessionLoginSchema: JsonSchema = {
  oneOf: [{ ...sessionFields, properties: { ...(sessionFields['properties'] as object), return_to: string } }, loginSchema],
}

/** What a line that ends in `sendSessionLogin` answers. */
export const sessionLoginAnswer: Answer = {
  status: 200,
  description: 'The session, in its cookie. Where a second factor is active: its challenge, and no cookie yet.',
  schema: sessionLoginSchema,
}

/** The answer of a login into a server-side session: its value travels in the cookie alone. A challenge sets no cookie. */
export function sendSessionLogin(ctx: AuthContext, res: Response, result: SessionLoginResult): void {
  if (result.kind === 'challenge') sendLogin(ctx, res, result, 'bearer')
  else {
    forgetCsrfBinding(res)
    setSessionCookie(ctx, res, result.sessionToken, result.expiresAt)
    sendJson(res, 200, { user_id: result.userId, expires_at: result.expiresAt.toISOString(), ...returnToOf(result) })
  }
}

interface SessionCookieContext {
  readonly settings: GuardSettings
  /** Of the router; guards without one know none. */
  readonly prefix?: string
}

/** The browser keeps the cookie as long as the session lives. */
export function setSessionCookie(ctx: SessionCookieContext & { now: () => Date }, res: Response, token: string, expiresAt: Date): void {
  const maxAgeSeconds = Math.floor((expiresAt.getTime() - ctx.now().getTime()) / 1000)
  setCookie(ctx, res, ctx.settings.sessionCookieName, token, { ...scope(ctx.settings), maxAgeSeconds })
}

export function clearSessionCookie(ctx: SessionCookieContext, res: Response): void {
  clearCookie(ctx, res, ctx.settings.sessionCookieName, scope(ctx.settings))
}

export function readSessionCookie(ctx: SessionCookieContext, req: Request): string | null {
  return readCookie(ctx, req, ctx.settings.sessionCookieName)
}

export function originOf(ctx: AuthContext, req: Request): SessionOrigin {
  return { ip: req.ip, userAgent: req.headers['user-agent'], sessionToken: readSessionCookie(ctx, req) }
}

/** The host's own routes are behind it too. */
function scope({ cookieSamesite }: GuardSettings) {
  return { path: '/', sameSite: cookieSamesite }
}
