import type { AuthContext } from '../context'
import type { SessionStore } from '../store/auth-store'
import { signAccessToken } from './access-token'
import { findBySessionCookie, sessionsOf } from './find-session'
import type { LoginChallenge, OpenedSession, OpenSession, TokenPair } from './finish-login'
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

/** For `finishLogin`: an access token and a refresh token. The refresh token is stateless where the store keeps no sessions. */
export function openTokens(origin: SessionOrigin = {}): OpenSession<TokenPair> {
  return async (ctx, user, login) => {
    const { sessions } = ctx.store
    const { sessionId, token, expiresAt, createdAt } = sessions
      ? refreshTokenOf(await startSession(ctx, sessions, 'tokens', user, login, origin))
      : { sessionId: null, ...(await issueStatelessToken(ctx, user.id, login.amr)) }
    return {
      kind: 'session',
      userId: user.id,
      amr: login.amr,
      accessToken: signAccessToken(ctx, user, { amr: login.amr, sessionId, at: createdAt }),
      refreshToken: token,
      refreshTokenExpiresAt: expiresAt,
    }
  }
}

function refreshTokenOf({ session, token }: Awaited<ReturnType<typeof startSession>>) {
  return { sessionId: session.id, token, expiresAt: session.expiresAt, createdAt: session.createdAt }
}

/** For `finishLogin`: a session behind a cookie, in the place of the one that the browser presents. */
export function openServerSession(origin: SessionOrigin): OpenSession<OpenedServerSession> {
  return async (ctx, user, login) => {
    const sessions = sessionsOf(ctx.store)
    if (origin.sessionToken) await endPresented(ctx, sessions, origin.sessionToken)
    const { session, token } = await startSession(ctx, sessions, 'session', user, login, origin)
    return { kind: 'session', userId: user.id, amr: login.amr, sessionId: session.id, sessionToken: token, expiresAt: session.expiresAt }
  }
}

/** The browser is about to forget it: nobody could end it by its cookie any more. */
async function endPresented(ctx: AuthContext, sessions: SessionStore, presented: string): Promise<void> {
  const found = await findBySessionCookie({ sessions, sessionTokenKeys: ctx.keys['session-token'] }, presented)
  if (found) await sessions.revoke({ id: found.session.id }, ctx.now())
}
