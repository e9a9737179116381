import { type AuthMethod, amrFromText } from '../amr'
import { askForClaims } from '../claims/ask-for-claims'
import type { HostClaims } from '../claims/host-claims'
import type { AuthContext } from '../context'
import { AccountInactiveError, InvalidTokenError } from '../errors'
import { hashOpaqueToken } from '../opaque-token'
import type { SessionStore, UserRecord } from '../store/auth-store'
import { toPublicUser } from '../store/public-user'
import { signAccessToken } from './access-token'
import { claimsToGoOn } from './claims-of-login'
import { isAlive } from './find-session'
import { lasting, type TokenPair } from './finish-login'
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
  /** When the person last showed a credential; a refresh does not move it. */
  readonly authenticatedAt: Date | null
  readonly refreshToken: string
  readonly expiresAt: Date
  /** False: its cookies end with the browser. */
  readonly isPersistent: boolean
  /** The instant before the user was read: what the access token allows is what the account allowed then. */
  readonly at: Date
}

/**
 * Uses up a refresh token for a new pair. The methods of the login are repeated, never extended. A token that is presented
 * again ends its session (RFC 9700 section 4.14.2), and that end is committed although the request fails. With `refreshReuseGraceSeconds`,
 * it gets its one successor again for that long. A stateless token can be used any number of times.
 *
 * @throws InvalidTokenError unknown, expired, revoked or reused; with the token unused AccountInactiveError, and ServiceUnavailableError
 *   where the host's claims cannot be had
 */
export async function refresh(ctx: AuthContext, presented: string): Promise<TokenPair> {
  const continued = await continueSession(ctx, presented)
  const { user, amr, sessionId, authenticatedAt, refreshToken, expiresAt, at } = continued
  // A used token that gets its successor again, and a stateless one: nothing is used up by them.
  const claims = continued.claims ?? (await claimsToGoOn(ctx, { userId: user.id, session: null, amr }))
  return {
    kind: 'session',
    userId: user.id,
    amr,
    accessToken: signAccessToken(ctx, user, { amr, sessionId, authenticatedAt, at, claims }),
    refreshToken,
    refreshTokenExpiresAt: expiresAt,
    ...lasting(continued),
  }
}

async function continueSession(ctx: AuthContext, presented: string): Promise<ContinuedSession & { claims?: HostClaims | null }> {
  const { sessions } = ctx.store
  if (!sessions) return continueStateless(ctx, presented)
  // One instant for both: a request that waited for the winner, or for the database, is judged by when it asked.
  const at = ctx.now()
  const token = readSessionToken(ctx.keys['session-token'], 'tokens', presented) ?? (await findOldToken(sessions, presented))
  if (!token) throw new InvalidTokenError()
  const claims = await claimsBeforeUse(ctx, sessions, presented, token, at)
  const continued = (await rotate(ctx, sessions, presented, token, at)) ?? (await refuseUsedToken(ctx, sessions, presented, token, at))
  return { ...continued, claims }
}

/** Null where the token will be refused, or is used already: its second use ends the session, whatever the host's function does. */
async function claimsBeforeUse(
  ctx: AuthContext,
  sessions: SessionStore,
  presented: string,
  { id }: SessionTokenId,
  at: Date,
): Promise<HostClaims | null> {
  const found = ctx.accessTokenClaims && (await sessions.find({ id }))
  if (found?.session.tokenHash !== hashOpaqueToken(presented) || !isAlive(found.session, at) || !found.user.isActive) return null
  return askForClaims(ctx, toPublicUser(found.user), amrFromText(found.session.amr))
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
  const { amr, authenticatedAt, expiresAt, isPersistent } = session
  return {
    user,
    amr: amrFromText(amr),
    sessionId: id,
    authenticatedAt: authenticatedAt ?? null,
    refreshToken: successor,
    expiresAt,
    isPersistent,
    at,
  }
}

async function continueStateless(ctx: AuthContext, presented: string): Promise<ContinuedSession> {
  const at = ctx.now()
  const session = readStatelessToken(ctx, presented, at)
  const user = await ctx.store.users.find(session.userId)
  if (!user || !isStillTrusted(ctx, session, user)) throw new InvalidTokenError()
  if (!user.isActive) throw new AccountInactiveError()
  const { token: refreshToken, expiresAt } = signStatelessToken(ctx, user, session, at)
  const { amr, authenticatedAt, isPersistent } = session
  return { user, amr, sessionId: null, authenticatedAt, refreshToken, expiresAt, isPersistent, at }
}
