import type { Request, Response } from 'express'
import type { Settings } from '../config/every-setting'
import type { AuthContext } from '../context'
import { clearCookie, readCookie, setCookie } from '../http/cookies'
import { type Answer, flag, type JsonSchema, shape, string, stringOrNull } from '../http/description'
import { locationOf } from '../http/return-to'
import { sendJson } from '../http/send'
import { forgetCsrfBinding } from './csrf-binding'
import type { LoginResult, TokenPair } from './finish-login'
import type { KeptTokens } from './keep-session'

const loginFields = shape('Login', {
  user_id: string,
  access_token: stringOrNull,
  refresh_token: stringOrNull,
  mfa_required: flag,
  mfa_token: stringOrNull,
})

/**
 * `password_required` is there, and true, only where the first proof of the address removed the password; `return_to` where the login began
 * with one, and this answer opens the session.
 */
export const loginSchema: JsonSchema = {
  ...loginFields,
  properties: { ...(loginFields['properties'] as object), password_required: { const: true }, return_to: string },
}

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

/**
 * The answer of a session that goes on, and with it the CSRF tokens of its pages. `refresh_token` is null where the refresh token did not
 * move; its cookie then stays as it is.
 */
export function sendRefreshed(ctx: AuthContext, res: Response, pair: TokenPair | KeptTokens, delivery: Delivery): void {
  if (delivery !== 'bearer') setTokenCookies(ctx, res, pair)
  sendJson(res, 200, loginBody(pair, delivery))
}

export function setLoginCookies(ctx: AuthContext, res: Response, result: LoginResult): void {
  if (result.kind !== 'session') return
  forgetCsrfBinding(res)
  setTokenCookies(ctx, res, result)
}

/** Without a new refresh token its cookie stays as it is. */
export function setTokenCookies(ctx: AuthContext, res: Response, result: TokenPair | KeptTokens): void {
  const { settings } = ctx
  setCookie(ctx, res, settings.accessCookieName, result.accessToken, {
    ...accessScope(settings),
    maxAgeSeconds: settings.accessTokenTtlSeconds,
  })
  const { refreshToken, refreshTokenExpiresAt } = result
  if (refreshToken === null || refreshTokenExpiresAt === null) return
  const refreshSeconds = Math.floor((refreshTokenExpiresAt.getTime() - ctx.now().getTime()) / 1000)
  setCookie(ctx, res, settings.refreshCookieName, refreshToken, { ...refreshScope(ctx), maxAgeSeconds: refreshSeconds })
}

export function clearLoginCookies(ctx: AuthContext, res: Response): void {
  clearCookie(ctx, res, ctx.settings.accessCookieName, accessScope(ctx.settings))
  clearCookie(ctx, res, ctx.settings.refreshCookieName, refreshScope(ctx))
}

export function readRefreshCookie(ctx: AuthContext, req: Request): string | null {
  return readCookie(ctx, req, ctx.settings.refreshCookieName)
}

function loginBody(result: LoginResult | KeptTokens, delivery: Delivery): object {
  const tokens = result.kind === 'session' && delivery !== 'cookie' ? result : null
  return {
    user_id: result.userId,
    access_token: tokens?.accessToken ?? null,
    refresh_token: tokens?.refreshToken ?? null,
    mfa_required: result.kind === 'challenge',
    mfa_token: result.kind === 'challenge' ? result.mfaToken : null,
    ...(result.kind === 'session' && result.passwordRequired && { password_required: true }),
    ...(result.kind === 'session' && returnToOf(result)),
  }
}

/** For a script that finishes the login itself, and sends the browser on. Nothing is ever added to it. */
export function returnToOf({ returnTo }: { returnTo?: string }): { return_to?: string } {
  return returnTo === undefined ? {} : { return_to: locationOf(returnTo) }
}

function accessScope(settings: Settings) {
  return { path: '/', sameSite: settings.cookieSamesite }
}

/** The browser sends the refresh token only where it is spent: below the mount, or below its cookie twins. */
function refreshScope({ settings, prefix }: AuthContext) {
  return { path: settings.tokenDelivery === 'both' ? `${prefix}/cookie` : prefix, sameSite: settings.cookieSamesite }
}
