import type { Request, Response } from 'express'
import type { AuthContext } from '../../context'
import { readRefreshCookie, setRefreshCookie } from '../delivery'
import { renewDevice } from '../device-cookie'
import type { CookieOfRequest, RenewedCookie, StayingSession } from '../reissue-tokens'
import type { RouteSet } from '../routes-by-delivery'
import { setSessionCookie } from '../session-cookie'

/** Returns the cookie whose value a change of the account replaces. Null on routes with tokens in the body. */
export function cookieOf(ctx: AuthContext, req: Request, delivery: RouteSet['delivery']): CookieOfRequest | null {
  if (delivery === 'bearer') return null
  return { refreshToken: delivery === 'cookie' ? readRefreshCookie(ctx, req) : null }
}

/** Gives the browser the new value of its session's cookie. */
export function setRenewedCookie(ctx: AuthContext, res: Response, cookie: RenewedCookie | null): void {
  if (!cookie) return
  if ('sessionToken' in cookie) setSessionCookie(ctx, res, cookie)
  else setRefreshCookie(ctx, res, cookie)
}

/** Keeps the browser of a session that survived a change of the password or the address: its cookie, and its entry as a known device. */
export function keepBrowser(ctx: AuthContext, req: Request, res: Response, { user, cookie }: StayingSession): void {
  setRenewedCookie(ctx, res, cookie)
  if (ctx.settings.tokenDelivery !== 'bearer') renewDevice(ctx, req, res, user)
}
