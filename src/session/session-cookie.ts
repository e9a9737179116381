import type { Request, Response } from 'express'
import type { GuardSettings } from '../config/guard-settings'
import type { AuthContext } from '../context'
import { clearCookie, readCookie, setCookie } from '../http/cookies'
import { type Answer, instant, type JsonSchema, shape, string } from '../http/description'
import { sendJson } from '../http/send'
import { loginSchema, sendLogin } from './delivery'
import type { SessionLoginResult } from './open-session'
import type { SessionOrigin } from './start-session'

const sessionLoginSchema: JsonSchema = {
  oneOf: [shape('SessionLogin', { user_id: string, expires_at: instant }), loginSchema],
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
    setSessionCookie(ctx, res, result.sessionToken, result.expiresAt)
    sendJson(res, 200, { user_id: result.userId, expires_at: result.expiresAt.toISOString() })
  }
}

/** The browser keeps the cookie as long as the session lives. */
export function setSessionCookie(
  { settings, now }: { settings: GuardSettings; now: () => Date },
  res: Response,
  token: string,
  expiresAt: Date,
): void {
  const maxAgeSeconds = Math.floor((expiresAt.getTime() - now().getTime()) / 1000)
  setCookie(settings, res, settings.sessionCookieName, token, { ...scope(settings), maxAgeSeconds })
}

export function clearSessionCookie(settings: GuardSettings, res: Response): void {
  clearCookie(settings, res, settings.sessionCookieName, scope(settings))
}

export function readSessionCookie(settings: GuardSettings, req: Request): string | null {
  return readCookie(req, settings.sessionCookieName)
}

export function originOf({ settings }: AuthContext, req: Request): SessionOrigin {
  return { ip: req.ip, userAgent: req.headers['user-agent'], sessionToken: readSessionCookie(settings, req) }
}

/** The host's own routes are behind it too. */
function scope({ cookieSamesite }: GuardSettings) {
  return { path: '/', sameSite: cookieSamesite }
}
