import type { AuthContext } from '../context'
import type { SessionStore } from '../store/auth-store'
import type { HostTypes } from '../store/host-types'
import { signAccessToken } from './access-token'
import { claimsToSign } from './claims-of-login'
import { findBySessionCookie, sessionsOf } from './find-session'
import { type LoginChallenge, type LoginResult, lasting, type OpenedSession, type OpenSession, type TokenPair } from './finish-login'
import { type SessionOrigin, startSession } from './start-session'
import { issueStatelessToken } from './stateless-refresh-token'

/** The result of a login with a server-side session. */
export interface OpenedServerSession extends OpenedSession {
  /** Identifies the session in lists. The id is not a credential. */
  sessionId: string
  /** The cookie's value. The response sends it once, and doorward never stores it. */
  sessionToken: string
  expiresAt: Date
}

export type SessionLoginResult = OpenedServerSession | LoginChallenge

/** The session that a login opened, in any delivery. */
export type AnySession = TokenPair | OpenedServerSession

export type AnyLoginResult = AnySession | LoginChallenge

/** The result of a login method of the service. */
export type LoginResultOf<Host extends HostTypes> = Host extends { delivery: 'session' } ? SessionLoginResult : LoginResult

/** Returns the function for `finishLogin` that opens the kind of session that `tokenDelivery` names. */
export function openDelivered({ settings }: AuthContext, origin: SessionOrigin): OpenSession<AnySession> {
  return settings.tokenDelivery === 'session' ? openServerSession(origin) : openTokens(origin)
}

/**
 * Returns the function for `finishLogin` that makes an access token and a refresh token. If the store keeps no sessions, the refresh token
 * is stateless.
 */
export function openTokens(origin: SessionOrigin = {}): OpenSession<TokenPair> {
  const open: OpenSession<TokenPair> = async (ctx, user, login) => {
    const claims = claimsToSign(ctx, login)
    const { sessions } = ctx.store
    const { sessionId, token, authenticatedAt, expiresAt, createdAt, endedByLimit } = sessions
      ? refreshTokenOf(await startSession(ctx, sessions, 'tokens', user, login, origin))
      : { sessionId: null, endedByLimit: 0, ...(await issueStatelessToken(ctx, user.id, login)) }
    return {
      kind: 'session',
      userId: user.id,
      amr: login.amr,
      accessToken: signAccessToken(ctx, user, { amr: login.amr, sessionId, authenticatedAt, at: createdAt, claims }),
      refreshToken: token,
      refreshTokenExpiresAt: expiresAt,
      ...(endedByLimit > 0 && { endedByLimit }),
      ...lasting(login),
    }
  }
  return Object.assign(open, { takesClaims: true })
}

function refreshTokenOf({ session, token, endedByLimit }: Awaited<ReturnType<typeof startSession>>) {
  const { id: sessionId, authenticatedAt, expiresAt, createdAt } = session
  return { sessionId, token, authenticatedAt, expiresAt, createdAt, endedByLimit }
}

/**
 * Returns the function for `finishLogin` that starts a server-side session. The returned function also revokes the session of the browser's
 * current cookie.
 */
export function openServerSession(origin: SessionOrigin): OpenSession<OpenedServerSession> {
  return async (ctx, user, login) => {
    const sessions = sessionsOf(ctx.store)
    if (origin.sessionToken) await endPresented(ctx, sessions, origin.sessionToken)
    const { session, token, endedByLimit } = await startSession(ctx, sessions, 'session', user, login, origin)
    const { id: sessionId, expiresAt } = session
    return {
      kind: 'session',
      userId: user.id,
      amr: login.amr,
      sessionId,
      sessionToken: token,
      expiresAt,
      ...(endedByLimit > 0 && { endedByLimit }),
      ...lasting(login),
    }
  }
}

/** Revokes the session of the browser's old cookie. The browser will lose that cookie, so nobody could log that session out later. */
async function endPresented(ctx: AuthContext, sessions: SessionStore, presented: string): Promise<void> {
  const found = await findBySessionCookie({ sessions, sessionTokenKeys: ctx.keys['session-token'] }, presented)
  if (found) await sessions.revoke({ id: found.session.id }, ctx.now())
}
