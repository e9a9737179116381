import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { OAuthStateMismatchError } from '../core/errors'
import { accountDigest } from '../sessions/account-digest'
import { readCredential } from '../sessions/credentials'
import { readProofCookie, setProofCookie } from '../sessions/proof-cookies'
import { requestSessionOf } from '../sessions/reauthentication/fresh-session'
import type { Irreversibility } from '../sessions/reauthentication/irreversible-change'
import { findRequestSession } from '../sessions/reauthentication/request-session'
import { type TicketOwner, ticketSeconds } from '../sessions/tickets'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { beginAttempt, signedInAs } from './attempts'
import type { Attempt, BoundAttempt } from './state-cookie'

const cookieName = 'oauth_binding'

interface BoundIntent extends Pick<BoundAttempt, 'provider' | 'purpose' | 'destination'> {
  readonly user: UserRecord
  readonly session: SessionRecord | null
  readonly isFinal?: Irreversibility
}

/**
 * Begins an attempt for the account and the session of the request. With `cookieSecure`, the browser also gets a cookie that no other
 * subdomain can set. An attacker on a subdomain can plant an attempt and a session cookie in another browser, but not this cookie. Without
 * this cookie, the callback treats the browser as not signed in.
 */
export function beginBoundAttempt(
  ctx: AuthContext,
  req: Request,
  res: Response,
  { provider, purpose, user, session, isFinal = false, destination }: BoundIntent,
): Attempt {
  const { tokenDelivery, cookieSecure, oauthStateTtlSeconds } = ctx.settings
  const sessionId = session?.id ?? null
  if (tokenDelivery !== 'bearer' && cookieSecure)
    setProofCookie(ctx, res, cookieName, sessionId ?? user.id, oauthStateTtlSeconds + ticketSeconds)
  const startedAt = Math.floor(ctx.now().getTime() / 1000)
  return beginAttempt(ctx, req, res, provider, {
    purpose,
    userId: user.id,
    sessionId,
    digest: accountDigest(ctx.keys.state[0], user),
    startedAt,
    isFinal,
    destination,
  })
}

/**
 * Returns true if the callback's browser is signed in, by cookies, to the account and session that began the attempt. Always false in
 * delivery `bearer`, because browsers have no cookies in that delivery.
 * @throws OAuthStateMismatchError if another person is signed in
 */
export async function isInSameSession(ctx: AuthContext, req: Request, attempt: BoundAttempt): Promise<boolean> {
  const { userId, sessionId } = attempt
  if (ctx.settings.tokenDelivery === 'bearer') return false
  if (!ctx.store.sessions) return signedInAs(ctx, req) === userId && hasBinding(ctx, req, userId)
  const session = await findRequestSession(ctx, req)
  if (session && session.userId !== userId) throw new OAuthStateMismatchError()
  return session !== null && session.id === sessionId && hasBinding(ctx, req, session.id)
}

/**
 * Returns the account and session that may redeem a ticket in this request. Null: a cookie authenticates the request, but this browser
 * began no attempt. An attacker may have planted the cookie.
 */
export function ticketOwner(ctx: AuthContext, req: Request): TicketOwner | null {
  const { user, session } = requestSessionOf(req)
  const owner = { userId: user.id, sessionId: session?.id ?? null }
  return readCredential(ctx, req)?.from === 'header' || hasBinding(ctx, req, owner.sessionId ?? owner.userId) ? owner : null
}

function hasBinding(ctx: AuthContext, req: Request, value: string): boolean {
  return !ctx.settings.cookieSecure || readProofCookie(ctx, req, cookieName) === value
}
