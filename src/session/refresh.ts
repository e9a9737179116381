import { type AuthMethod, amrFromText } from '../amr'
import type { AuthContext } from '../context'
import { AccountInactiveError, InvalidTokenError } from '../errors'
import { hashOpaqueToken } from '../opaque-token'
import type { SessionStore, UserRecord } from '../store/auth-store'
import { signAccessToken } from './access-token'
import type { TokenPair } from './finish-login'
import { after } from './instants'
import { refuseUsedToken } from './reused-token'
import { isOldSessionToken, readSessionToken, type SessionTokenId } from './session-token'
import { isStillTrusted, readStatelessToken, signStatelessToken } from './stateless-refresh-token'
import { successorOf } from './successor'

/** A session that goes on: whose, how it began, and its next refresh token. */
export interface ContinuedSession {
  readonly user: Pick<UserRecord, 'id' | 'email'>
  readonly amr: readonly AuthMethod[]
  /** Null: the store keeps no sessions. */
  readonly sessionId: string | null
  readonly refreshToken: string
  readonly expiresAt: Date
  /** The instant before the user was read: what the access token allows is what the account allowed then. */
  readonly at: Date
}

/**
 * Uses up a refresh token for a new pair. The methods of the login are repeated, never extended. A token that is presented again ends its
 * session (RFC 9700 section 4.14.2), and that end is committed although the request fails. With `refreshReuseGraceSeconds`, it gets its one
 * successor again for that long (contract section 14.5). A stateless token can be used any number of times.
 *
 * @throws InvalidTokenError unknown, expired, revoked or reused; AccountInactiveError with the token unused
 */
export async function refresh(ctx: AuthContext, presented: string): Promise<TokenPair> {
  const { user, amr, sessionId, refreshToken, expiresAt, at } = await continueSession(ctx, presented)
  return {
    kind: 'session',
    userId: user.id,
    amr,
    accessToken: signAccessToken(ctx, user, { amr, sessionId, at }),
    refreshToken,
    refreshTokenExpiresAt: expiresAt,
  }
}

async function continueSession(ctx: AuthContext, presented: string): Promise<ContinuedSession> {
  const { sessions } = ctx.store
  if (!sessions) return continueStateless(ctx, presented)
  // One instant for both: a request that waited for the winner, or for the database, is judged by when it asked.
  const at = ctx.now()
  const token = readSessionToken(ctx.keys['session-token'], 'tokens', presented) ?? (await findOldToken(sessions, presented))
  if (!token) throw new InvalidTokenError()
  return (await rotate(ctx, sessions, presented, token, at)) ?? (await refuseUsedToken(ctx, sessions, presented, token, at))
}

/** A token of release 0.1.0 says nothing about itself. Once it was used, nothing knows it. */
async function findOldToken(sessions: SessionStore, presented: string): Promise<SessionTokenId | null> {
  if (!isOldSessionToken(presented)) return null
  const found = await sessions.find({ tokenHash: hashOpaqueToken(presented), kind: 'tokens' })
  return found?.session ?? null
}

/** No transaction around it, because one statement decides. */
async function rotate(
  ctx: AuthContext,
  sessions: SessionStore,
  presented: string,
  { id, generation }: SessionTokenId,
  at: Date,
): Promise<ContinuedSession | null> {
  const successor = successorOf(ctx, presented, { id, generation: generation + 1 })
  const rotated = await sessions.rotate({
    tokenHash: hashOpaqueToken(presented),
    successorHash: hashOpaqueToken(successor),
    generation: generation + 1,
    expiresAt: after(at, ctx.settings.refreshTokenTtlSeconds),
    at,
  })
  if (!rotated) return null
  const { session, user } = rotated
  if (session.id !== id) throw new InvalidTokenError() // an adapter that answers with another session
  return { user, amr: amrFromText(session.amr), sessionId: session.id, refreshToken: successor, expiresAt: session.expiresAt, at }
}

async function continueStateless(ctx: AuthContext, presented: string): Promise<ContinuedSession> {
  const at = ctx.now()
  const session = readStatelessToken(ctx, presented, at)
  const user = await ctx.store.users.find(session.userId)
  if (!user || !isStillTrusted(ctx, session, user)) throw new InvalidTokenError()
  if (!user.isActive) throw new AccountInactiveError()
  const { token: refreshToken, expiresAt } = signStatelessToken(ctx, user, session.amr, session.end, at)
  return { user, amr: session.amr, sessionId: null, refreshToken, expiresAt, at }
}
