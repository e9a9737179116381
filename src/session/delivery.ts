import type { Request, Response } from 'express'
import type { Settings } from '../config/settings'
import type { AuthContext } from '../context'
import { clearCookie, readCookie, setCookie } from '../http/cookies'
import { type Answer, flag, shape, string, stringOrNull } from '../http/description'
import { sendJson } from '../http/send'
import type { LoginResult } from './finish-login'
import type { KeptSession } from './log-out'

export const loginSchema = shape('Login', {
  user_id: string,
  access_token: stringOrNull,
  refresh_token: stringOrNull,
  mfa_required: flag,
  mfa_token: stringOrNull,
})

/** What a line that ends in `sendLogin` answers. */
export function loginAnswer(delivery: Delivery): Answer {
  const session = {
    bearer: 'The session’s two tokens',
    cookie: 'The session, in two cookies; the tokens of the body are null',
    both: 'The session’s two tokens, in the body and in two cookies',
  }[delivery]
  return {
    status: 200,
    description: `${session}. Where a second factor is active: its challenge, and no session yet.`,
    schema: loginSchema,
  }
}

/** How a login's answer travels: in the body, in cookies with null body fields, or both. */
export type Delivery = Settings['tokenDelivery']

/** The answer of every login-shaped route. A challenge is always the body's, and sets no cookie. */
export function sendLogin(ctx: AuthContext, res: Response, result: LoginResult, delivery: Delivery): void {
  if (delivery !== 'bearer') setLoginCookies(ctx, res, result)
  sendJson(res, 200, loginBody(result, delivery))
}

export function setLoginCookies(ctx: AuthContext, res: Response, result: LoginResult): void {
  if (result.kind !== 'session') return
  const { settings } = ctx
  const refreshSeconds = Math.floor((result.refreshTokenExpiresAt.getTime() - ctx.now().getTime()) / 1000)
  setCookie(settings, res, settings.accessCookieName, result.accessToken, {
    ...accessScope(settings),
    maxAgeSeconds: settings.accessTokenTtlSeconds,
  })
  setCookie(settings, res, settings.refreshCookieName, result.refreshToken, { ...refreshScope(ctx), maxAgeSeconds: refreshSeconds })
}

export function clearLoginCookies(ctx: AuthContext, res: Response): void {
  clearCookie(ctx.settings, res, ctx.settings.accessCookieName, accessScope(ctx.settings))
  clearCookie(ctx.settings, res, ctx.settings.refreshCookieName, refreshScope(ctx))
}

export function readRefreshCookie(ctx: AuthContext, req: Request): string | null {
  return readCookie(req, ctx.settings.refreshCookieName)
}

/** The session a request shows, to be kept where the others end: named in the body, or by the cookie that came along. */
export function shownSession(ctx: AuthContext, req: Request, body: { refresh_token?: string }, delivery: 'bearer' | 'cookie'): KeptSession {
  const cookie = delivery === 'cookie' ? readRefreshCookie(ctx, req) : null
  // Server-side sessions know no delivery: their cookie counts wherever it comes along.
  const sessionToken = readCookie(req, ctx.settings.sessionCookieName) ?? undefined
  return { refreshToken: body.refresh_token ?? cookie ?? undefined, sessionToken }
}

function loginBody(result: LoginResult, delivery: Delivery): object {
  const tokens = result.kind === 'session' && delivery !== 'cookie' ? result : null
  return {
    user_id: result.userId,
    access_token: tokens?.accessToken ?? null,
    refresh_token: tokens?.refreshToken ?? null,
    mfa_required: result.kind === 'challenge',
    mfa_token: result.kind === 'challenge' ? result.mfaToken : null,
  }
}

function accessScope(settings: Settings) {
  return { path: '/', sameSite: settings.cookieSamesite }
}

/** The browser sends the refresh token only where it is spent: below the mount, or below its cookie twins. */
function refreshScope({ settings, prefix }: AuthContext) {
  return { path: settings.tokenDelivery === 'both' ? `${prefix}/cookie` : prefix, sameSite: settings.cookieSamesite }
}
