import type { Response } from 'express'
import type { AuthContext } from '../context'
import { noteOutcome } from '../http/outcome'
import { sendJson } from '../http/send'
import { type Delivery, loginBody, setTokenCookies } from './delivery'
import type { KeptTokens } from './keep-session'
import type { OpenedServerSession } from './open-session'
import { setSessionCookie } from './session-cookie'

/** A session that goes on, of either kind. */
export type ContinuedSession = KeptTokens | OpenedServerSession

/** Answers with what the session has become; the value of a server-side session travels in its cookie alone. */
export function sendKept(ctx: AuthContext, res: Response, kept: ContinuedSession, delivery: Delivery): void {
  if (delivery !== 'bearer' || 'sessionToken' in kept) setKeptCookies(ctx, res, kept)
  noteOutcome(res, kept)
  sendJson(res, 200, loginBody(kept, delivery))
}

/** For an answer that is a redirect. */
export function setKeptCookies(ctx: AuthContext, res: Response, kept: ContinuedSession): void {
  if ('sessionToken' in kept) setSessionCookie(ctx, res, kept)
  else setTokenCookies(ctx, res, kept)
}
