import { type AuthContext, unitOfWork } from '../context'
import { InvalidTokenError } from '../errors'
import type { SessionKind, SessionStore, SessionWithUser } from '../store/auth-store'
import { findByRefreshToken, findBySessionCookie, isAlive, sessionsOf } from './find-session'
import { readSessionToken } from './session-token'
import { isStillTrusted, readStatelessToken } from './stateless-refresh-token'

/** What a logout found. */
export interface LoggedOut {
  /** The session that it ended alone; null: none, or all of the account's. */
  readonly endedId: string | null
  /** The registration key of the provider that had opened the session; null: none, or not known. */
  readonly provider: string | null
}

const nothing: LoggedOut = Object.freeze({ endedId: null, provider: null })

/**
 * Ends the session of a refresh token, or every session of its user. Idempotent, and silent about tokens nobody knows (RFC 7009
 * section 2.2). A token of an ended session ends nothing more. A stateless token lives on: only what is kept can be ended.
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

/** The same by the value of a session cookie. */
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
 * Ends one session by one statement, for a client past its rate limit: no row is read, so no event says whose it was. A token without a
 * good MAC ends nothing.
 */
export async function logOutByMac(ctx: AuthContext, kind: SessionKind, presented: string): Promise<LoggedOut> {
  const token = readSessionToken(ctx.keys['session-token'], kind, presented)
  const isEnded = token !== null && (await ctx.store.sessions?.revoke({ id: token.id, kind }, ctx.now()))
  return isEnded ? { endedId: token.id, provider: null } : nothing
}

/** Also finds it by a used token, because its holder may revoke the session. */
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

/** Ends every session of a user, inside the caller's transaction; the row first, as every login does. */
export async function endSessions(ctx: AuthContext, userId: string): Promise<void> {
  await ctx.store.users.lock(userId)
  await endOtherSessions(ctx, userId)
}

/** What a person shows of the session that is to go on. One session goes on: the first of these that names one. */
export interface KeptSession {
  refreshToken?: string | undefined
  /** A server-side session's id, as lists and `getSession(req)` have it. */
  sessionId?: string | undefined
  /** The same by the value of its cookie. */
  sessionToken?: string | undefined
}

/** Revoked with the other sessions, because one of them may have begun it. */
const openRequests = ['EMAIL_CHANGE', 'LINK_TICKET', 'REAUTH_TICKET', 'OAUTH_CODE'] as const

/**
 * The same, but for the session that is shown; inside a transaction that holds the user's row. Also ends what a person asked for and has
 * not finished: a change of address, tickets of linking and reauthentication, and logins of apps that wait for their exchange.
 * @returns the id of the session that goes on
 */
export async function endOtherSessions(ctx: AuthContext, userId: string, keep: KeptSession = {}): Promise<string | null> {
  await ctx.store.userTokens.consumeAllForUser(userId, ctx.now(), openRequests)
  const { sessions } = ctx.store
  if (!sessions) return null
  const exceptId = await keptSessionId(ctx, sessions, userId, keep)
  await sessions.revokeForUser(userId, ctx.now(), exceptId === null ? {} : { exceptId })
  return exceptId
}

/** Only a token that is valid now names a session: one that was rotated away names somebody else's by now. */
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
