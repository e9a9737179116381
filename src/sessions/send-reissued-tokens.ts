import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { sendJson, setResult } from '../http/send'
import { readRefreshCookie, setRefreshCookie, setSessionCookie, setTokenCookies } from './cookies'
import { type Delivery, loginBody } from './delivery'
import { confirmKnownDevice, renewDevice } from './devices/device-cookie'
import { readSessionToken } from './find-session'
import type { OpenedServerSession } from './login'
import type { CookieOfRequest, ReissuedTokens, RenewedCookie, StayingSession } from './reissue-tokens'
import type { RouteSet } from './routes-by-delivery'

export type ReissuedSession = ReissuedTokens | OpenedServerSession

export function sendReissuedTokens(ctx: AuthContext, req: Request, res: Response, kept: ReissuedSession, delivery: Delivery): void {
  if (delivery !== 'bearer' || 'sessionToken' in kept) setReissuedCookies(ctx, req, res, kept)
  else keepDevice(ctx, req, res, kept)
  setResult(res, kept)
  sendJson(res, 200, loginBody(kept, delivery))
}

/** For a response that is a redirect. */
export function setReissuedCookies(ctx: AuthContext, req: Request, res: Response, kept: ReissuedSession): void {
  keepDevice(ctx, req, res, kept)
  if ('sessionToken' in kept) setSessionCookie(ctx, res, kept)
  else setTokenCookies(ctx, res, kept)
}

/** Keeps the entry as young as the session's row, which is fresh only together with a new value. */
function keepDevice(ctx: AuthContext, req: Request, res: Response, kept: ReissuedSession): void {
  const { tokenDelivery, accessTokenSessionClaims } = ctx.settings
  if (tokenDelivery === 'bearer' || accessTokenSessionClaims || 'sessionToken' in kept || kept.refreshToken === null) return
  const id = readSessionToken(ctx.keys['session-token'], 'tokens', kept.refreshToken)?.id ?? null
  confirmKnownDevice(ctx, req, res, { userId: kept.userId, id })
}

/** A change of the account replaces this cookie. Null on routes with tokens in the body. */
export function cookieOf(ctx: AuthContext, req: Request, delivery: RouteSet['delivery']): CookieOfRequest | null {
  if (delivery === 'bearer') return null
  return { refreshToken: delivery === 'cookie' ? readRefreshCookie(ctx, req) : null }
}

export function setRenewedCookie(ctx: AuthContext, res: Response, cookie: RenewedCookie | null): void {
  if (!cookie) return
  if ('sessionToken' in cookie) setSessionCookie(ctx, res, cookie)
  else setRefreshCookie(ctx, res, cookie)
}

/** After a change of the password or the address, the browser keeps its cookie and stays a known device. */
export function keepBrowser(ctx: AuthContext, req: Request, res: Response, { user, cookie }: StayingSession): void {
  setRenewedCookie(ctx, res, cookie)
  if (ctx.settings.tokenDelivery !== 'bearer') renewDevice(ctx, req, res, user)
}
