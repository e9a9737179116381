import type { AuthContext } from '../context'
import type { SessionStore } from '../store/auth-store'
import type { HostTypes } from '../store/host-types'
import { signAccessToken } from './access-token'
import { claimsToSign } from './claims-of-login'
import { findBySessionCookie, sessionsOf } from './find-session'
import { type LoginChallenge, type LoginResult, lasting, type OpenedSession, type OpenSession, type TokenPair } from './finish-login'
import { type SessionOrigin, startSession } from './start-session'
import { issueStatelessToken } from './stateless-refresh-token'

/** A login that ended in a server-side session. */
export interface OpenedServerSession extends OpenedSession {
  /** Names the session in lists; opens nothing. */
  sessionId: string
  /** The cookie's value: handed out once, never stored. */
  sessionToken: string
  expiresAt: Date
}

export type SessionLoginResult = OpenedServerSession | LoginChallenge

/** What a login opens, in whichever delivery. */
export type AnySession = TokenPair | OpenedServerSession

export type AnyLoginResult = AnySession | LoginChallenge

/** What a login verb of the service returns. */
export type LoginResultOf<Host extends HostTypes> = Host extends { delivery: 'session' } ? SessionLoginResult : LoginResult

/** For `finishLogin`: the session that `tokenDelivery` names. */
export function openDelivered({ settings }: AuthContext, origin: SessionOrigin): OpenSession<AnySession> {
  return settings.tokenDelivery === 'session' ? openServerSession(origin) : openTokens(origin)
}

/** For `finishLogin`: an access token and a refresh token. The refresh token is stateless where the store keeps no sessions. */
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

/** For `finishLogin`: a session behind a cookie, in the place of the one that the browser presents. */
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

/** The browser is about to forget it: nobody could end it by its cookie any more. */
async function endPresented(ctx: AuthContext, sessions: SessionStore, presented: string): Promise<void> {
  const found = await findBySessionCookie({ sessions, sessionTokenKeys: ctx.keys['session-token'] }, presented)
  if (found) await sessions.revoke({ id: found.session.id }, ctx.now())
}
