import type { Request, Response } from 'express'
import type { GuardSettings } from '../config/guard-settings'
import type { AuthContext } from '../context'
import { clearCookie, readCookie, setCookie } from '../http/cookies'
import type { SessionOrigin } from './start-session'

interface SessionCookieContext {
  readonly settings: GuardSettings
  /** Of the router; guards without one know none. */
  readonly prefix?: string
}

/** What a session cookie is made of. */
interface SessionCookie {
  readonly sessionToken: string
  readonly expiresAt: Date
  /** False: the cookie ends with the browser. Default true. */
  readonly isPersistent?: boolean
}

/** The browser keeps the cookie as long as the session lives. */
export function setSessionCookie(
  ctx: SessionCookieContext & { now: () => Date },
  res: Response,
  { sessionToken, expiresAt, isPersistent = true }: SessionCookie,
): void {
  const maxAgeSeconds = isPersistent ? Math.floor((expiresAt.getTime() - ctx.now().getTime()) / 1000) : null
  setCookie(ctx, res, ctx.settings.sessionCookieName, sessionToken, { ...scope(ctx.settings), maxAgeSeconds })
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
