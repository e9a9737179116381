import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { setResult } from '../http/outcome'
import { sendJson } from '../http/send'
import { type Delivery, loginBody, setTokenCookies } from './delivery'
import { confirmDevice } from './device-cookie'
import type { OpenedServerSession } from './login'
import type { ReissuedTokens } from './reissue-tokens'
import { setSessionCookie } from './session-cookie'
import { readSessionToken } from './session-token'

/** A session of either kind that continues. */
export type ReissuedSession = ReissuedTokens | OpenedServerSession

/** Sends the new tokens of a session. The token of a server-side session is only in its cookie. */
export function sendReissuedTokens(ctx: AuthContext, req: Request, res: Response, kept: ReissuedSession, delivery: Delivery): void {
  if (delivery !== 'bearer' || 'sessionToken' in kept) setReissuedCookies(ctx, req, res, kept)
  else keepDevice(ctx, req, res, kept)
  setResult(res, kept)
  sendJson(res, 200, loginBody(kept, delivery))
}

/** Sets only the cookies, for a response that is a redirect. */
export function setReissuedCookies(ctx: AuthContext, req: Request, res: Response, kept: ReissuedSession): void {
  keepDevice(ctx, req, res, kept)
  if ('sessionToken' in kept) setSessionCookie(ctx, res, kept)
  else setTokenCookies(ctx, res, kept)
}

/** Keeps the browser's entry as young as the session's row, which is fresh only together with a new value (25.2). */
function keepDevice(ctx: AuthContext, req: Request, res: Response, kept: ReissuedSession): void {
  const { tokenDelivery, accessTokenSessionClaims } = ctx.settings
  if (tokenDelivery === 'bearer' || accessTokenSessionClaims || 'sessionToken' in kept || kept.refreshToken === null) return
  const id = readSessionToken(ctx.keys['session-token'], 'tokens', kept.refreshToken)?.id ?? null
  confirmDevice(ctx, req, res, { userId: kept.userId, id })
}
