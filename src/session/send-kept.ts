import type { Response } from 'express'
import type { AuthContext } from '../context'
import { noteOutcome } from '../http/outcome'
import { sendJson } from '../http/send'
import { type Delivery, loginBody, setTokenCookies } from './delivery'
import type { KeptTokens } from './keep-session'
import type { OpenedServerSession } from './open-session'
import { setSessionCookie } from './session-cookie'

/** A session of either kind that continues. */
export type ContinuedSession = KeptTokens | OpenedServerSession

/** Sends the new tokens of a session. The token of a server-side session is only in its cookie. */
export function sendKept(ctx: AuthContext, res: Response, kept: ContinuedSession, delivery: Delivery): void {
  if (delivery !== 'bearer' || 'sessionToken' in kept) setKeptCookies(ctx, res, kept)
  noteOutcome(res, kept)
  sendJson(res, 200, loginBody(kept, delivery))
}

/** Sets only the cookies, for a response that is a redirect. */
export function setKeptCookies(ctx: AuthContext, res: Response, kept: ContinuedSession): void {
  if ('sessionToken' in kept) setSessionCookie(ctx, res, kept)
  else setTokenCookies(ctx, res, kept)
}
