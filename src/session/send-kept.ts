import type { Response } from 'express'
import type { AuthContext } from '../context'
import { sendJson } from '../http/send'
import { type Delivery, sendRefreshed, setTokenCookies } from './delivery'
import type { KeptTokens } from './keep-session'
import type { OpenedServerSession } from './open-session'
import { setSessionCookie } from './session-cookie'

/** A session that goes on, of either kind. */
export type ContinuedSession = KeptTokens | OpenedServerSession

/** Answers with what the session has become; the value of a server-side session travels in its cookie alone. */
export function sendKept(ctx: AuthContext, res: Response, kept: ContinuedSession, delivery: Delivery): void {
  if (!('sessionToken' in kept)) return void sendRefreshed(ctx, res, kept, delivery)
  setSessionCookie(ctx, res, kept.sessionToken, kept.expiresAt)
  sendJson(res, 200, { user_id: kept.userId, expires_at: kept.expiresAt.toISOString(), mfa_required: false })
}

/** For an answer that is a redirect. */
export function setKeptCookies(ctx: AuthContext, res: Response, kept: ContinuedSession): void {
  if ('sessionToken' in kept) setSessionCookie(ctx, res, kept.sessionToken, kept.expiresAt)
  else setTokenCookies(ctx, res, kept)
}
