import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import type { GuardSettings } from '../core/config/guard-settings'
import { clearCookie, readCookie, setCookie } from '../http/cookies'
import type { SessionOrigin } from './login'

interface SessionCookieContext {
  readonly settings: GuardSettings
  /** The router's prefix. Guards without a router have no prefix. */
  readonly prefix?: string
}

interface SessionCookie {
  readonly sessionToken: string
  readonly expiresAt: Date
  /** False: the browser deletes the cookie when it closes. Default true. */
  readonly isPersistent?: boolean
}

/** Sets the session cookie, with the lifetime of the session. */
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

export function sessionOriginOf(ctx: AuthContext, req: Request): SessionOrigin {
  return { ip: req.ip, userAgent: req.headers['user-agent'], sessionToken: readSessionCookie(ctx, req) }
}

/** Returns the scope of the cookie. The path is `/`, because the host's own routes use the cookie too. */
function scope({ cookieSamesite }: GuardSettings) {
  return { path: '/', sameSite: cookieSamesite }
}
