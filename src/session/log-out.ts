import { type AuthContext, unitOfWork } from '../context'
import { InvalidTokenError } from '../errors'
import type { SessionKind, SessionStore, SessionWithUser } from '../store/auth-store'
import { findByRefreshToken, findBySessionCookie, isAlive, sessionsOf } from './find-session'
import { readSessionToken } from './session-token'
import { isStillTrusted, readStatelessToken } from './stateless-refresh-token'

/** The result of a logout. */
export interface LoggedOut {
  /** The id of the revoked session. Null: the logout revoked no session, or all sessions of the account. */
  readonly endedId: string | null
  /** The name of the provider that the session was started with, as in the option `providers`. Null: no provider, or unknown. */
  readonly provider: string | null
}

const nothing: LoggedOut = Object.freeze({ endedId: null, provider: null })

/**
 * Revokes the session of a refresh token, or every session of its user. A client can repeat the logout, and an unknown token is no error
 * (RFC 7009 section 2.2). The token of an ended session revokes nothing. A stateless token stays valid, because only stored sessions can be
 * revoked.
 */
export async function logOut(
  ctx: AuthContext,
  presented: string,
  { allSessions = false }: { allSessions?: boolean } = {},
): Promise<LoggedOut> {
  const { sessions } = ctx.store
  if (!sessions) return logOutStateless(ctx, presented, allSessions)
  return endPresented(ctx, sessions, await findByAnyRefreshToken(ctx, sessions, presented), allSessions)
}

/** Logs out like `logOut`, by the value of a session cookie. */
export async function logOutSession(
  ctx: AuthContext,
  sessionToken: string,
  { allSessions = false }: { allSessions?: boolean } = {},
): Promise<LoggedOut> {
  const sessions = sessionsOf(ctx.store)
  const found = await findBySessionCookie({ sessions, sessionTokenKeys: ctx.keys['session-token'] }, sessionToken)
  return endPresented(ctx, sessions, found, allSessions)
}

/**
 * Revokes one session by one statement, for a client that exceeds its rate limit. The function reads no row, so it emits no event with the
 * user's id. A token without a valid MAC revokes nothing.
 */
export async function logOutByMac(ctx: AuthContext, kind: SessionKind, presented: string): Promise<LoggedOut> {
  const token = readSessionToken(ctx.keys['session-token'], kind, presented)
  const isEnded = token !== null && (await ctx.store.sessions?.revoke({ id: token.id, kind }, ctx.now()))
  return isEnded ? { endedId: token.id, provider: null } : nothing
}

/** Finds the session of a refresh token, even if the token was used. The owner of a used token is allowed to revoke the session. */
function findByAnyRefreshToken(ctx: AuthContext, sessions: SessionStore, presented: string): Promise<SessionWithUser | null> {
  const token = readSessionToken(ctx.keys['session-token'], 'tokens', presented)
  return token ? sessions.find({ id: token.id }) : findByRefreshToken({ sessions, sessionTokenKeys: ctx.keys['session-token'] }, presented)
}

async function endPresented(
  ctx: AuthContext,
  sessions: SessionStore,
  found: SessionWithUser | null,
  allSessions: boolean,
): Promise<LoggedOut> {
  if (!found || !isAlive(found.session, ctx.now())) return nothing
  const { id, userId, provider } = found.session
  if (allSessions) await unitOfWork(ctx, (ctx) => endSessions(ctx, userId))
  else if (!(await sessions.revoke({ id }, ctx.now()))) return nothing
  ctx.events.emit('logout', { userId, allSessions })
  return { endedId: allSessions ? null : id, provider }
}

async function logOutStateless(ctx: AuthContext, presented: string, allSessions: boolean): Promise<LoggedOut> {
  const userId = await ownerOfStateless(ctx, presented)
  if (userId !== null) ctx.events.emit('logout', { userId, allSessions })
  return nothing
}

async function ownerOfStateless(ctx: AuthContext, presented: string): Promise<string | null> {
  try {
    const session = readStatelessToken(ctx, presented, ctx.now())
    const user = await ctx.store.users.find(session.userId)
    return user && isStillTrusted(ctx, session, user) ? user.id : null
  } catch (error) {
    if (error instanceof InvalidTokenError) return null
    throw error
  }
}

/** Revokes every session of a user, inside the caller's transaction. Locks the user's row first, like every login. */
export async function endSessions(ctx: AuthContext, userId: string): Promise<void> {
  await ctx.store.users.lock(userId)
  await endOtherSessions(ctx, userId)
}

/** Names the session that stays live. The first member that names a live session decides. */
export interface KeptSession {
  refreshToken?: string | undefined
  /** The id of a server-side session, as in lists and in `getSession(req)`. */
  sessionId?: string | undefined
  /** The value of a session cookie. */
  sessionToken?: string | undefined
}

/** Unfinished requests. `endOtherSessions` also revokes them, because one of the other sessions may have started them. */
const openRequests = ['EMAIL_CHANGE', 'LINK_TICKET', 'REAUTH_TICKET', 'OAUTH_CODE'] as const

/**
 * Revokes every session of a user except the session in `keep`, inside a transaction that has locked the user's row. Also revokes
 * unfinished requests: a change of address, tickets, and app logins before their exchange. A ticket finishes a link or a reauthentication.
 * @returns the id of the session that stays live
 */
export async function endOtherSessions(ctx: AuthContext, userId: string, keep: KeptSession = {}): Promise<string | null> {
  await ctx.store.userTokens.consumeAllForUser(userId, ctx.now(), openRequests)
  const { sessions } = ctx.store
  if (!sessions) return null
  const exceptId = await keptSessionId(ctx, sessions, userId, keep)
  await sessions.revokeForUser(userId, ctx.now(), exceptId === null ? {} : { exceptId })
  return exceptId
}

/** Returns the id of the session to keep. An old token of a session cannot name the session, because an attacker may have the old token. */
async function keptSessionId(ctx: AuthContext, sessions: SessionStore, userId: string, keep: KeptSession): Promise<string | null> {
  const { refreshToken, sessionId, sessionToken } = keep
  const lookUp = { sessions, sessionTokenKeys: ctx.keys['session-token'] }
  const shown = [
    () => (refreshToken === undefined ? null : findByRefreshToken(lookUp, refreshToken)),
    () => (sessionId === undefined ? null : sessions.find({ id: sessionId })),
    () => (sessionToken === undefined ? null : findBySessionCookie(lookUp, sessionToken)),
  ]
  for (const find of shown) {
    const found = await find()
    if (found?.session.userId === userId && isAlive(found.session, ctx.now())) return found.session.id
  }
  return null
}
