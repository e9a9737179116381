import { type AuthContext, unitOfWork } from '../context'
import { InvalidTokenError } from '../errors'
import { hashOpaqueToken } from '../opaque-token'
import type { RefreshTokenStore } from '../store/auth-store'
import { findBySessionToken, isLive } from './server-session'
import { isStillTrusted, readStatelessToken } from './stateless-refresh-token'

/**
 * Ends the token's family, or every session of its user. Idempotent, and silent about tokens nobody knows (RFC 7009
 * section 2.2). A token of an ended family ends nothing more. A stateless token lives on: only what is kept can be ended.
 */
export async function logOut(ctx: AuthContext, presented: string, { allSessions = false }: { allSessions?: boolean } = {}): Promise<void> {
  const { refreshTokens } = ctx.store
  const ended = refreshTokens
    ? await endFamily(ctx, refreshTokens, presented, allSessions)
    : await endStateless(ctx, presented, allSessions)
  if (ended) ctx.events.emit('logout', ended)
}

/** Whom a logout was for, and whether it reached every session of theirs; null: nobody. */
type LoggedOut = { userId: string; allSessions: boolean } | null

async function endFamily(ctx: AuthContext, refreshTokens: RefreshTokenStore, presented: string, allSessions: boolean): Promise<LoggedOut> {
  const now = ctx.now()
  const token = await refreshTokens.find(hashOpaqueToken(presented))
  if (!token) return null
  const { userId, familyId } = token
  const isLiveFamily = !token.revokedAt && token.familyExpiresAt > now
  const all = allSessions && isLiveFamily
  await unitOfWork(ctx, async (ctx) => (all ? endSessions(ctx, userId) : ctx.store.refreshTokens?.revokeFamily(familyId, now)))
  return { userId, allSessions: all }
}

async function endStateless(ctx: AuthContext, presented: string, allSessions: boolean): Promise<LoggedOut> {
  const userId = await ownerOfStateless(ctx, presented)
  if (userId === null) return null
  if (allSessions) await unitOfWork(ctx, (ctx) => endSessions(ctx, userId))
  return { userId, allSessions }
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

/** Every refresh family and server-side session of a user, inside the caller's unit; the row first, as every login does. */
export async function endSessions(ctx: AuthContext, userId: string): Promise<number> {
  await ctx.store.users.lock(userId)
  return endOtherSessions(ctx, userId)
}

/** What a person shows of the session that is to go on. */
export interface KeptSession {
  refreshToken?: string | undefined
  /** A server-side session's id, as lists and `getSession(req)` have it. */
  sessionId?: string | undefined
  /** The same by the value of its cookie. */
  sessionToken?: string | undefined
}

/** The same, but for the session that is shown; inside a unit that holds the user's row. How many were alive. */
export async function endOtherSessions(ctx: AuthContext, userId: string, keep: KeptSession = {}): Promise<number> {
  const exceptFamilyId = keep.refreshToken === undefined ? null : await liveFamilyOf(ctx, userId, keep.refreshToken)
  const kept = exceptFamilyId === null ? {} : { exceptFamilyId }
  const families = (await ctx.store.refreshTokens?.revokeForUser(userId, ctx.now(), kept)) ?? 0
  const exceptId = keep.sessionId ?? (await sessionIdOf(ctx, userId, keep.sessionToken))
  const sessions = (await ctx.store.sessions?.deleteForUser(userId, exceptId === null ? {} : { exceptId })) ?? 0
  return families + sessions
}

/** Only an unspent token of this very user names a session: one that was rotated away names somebody else's by now. */
async function liveFamilyOf({ store, now }: AuthContext, userId: string, presented: string): Promise<string | null> {
  const token = await store.refreshTokens?.find(hashOpaqueToken(presented))
  const isAlive = token?.userId === userId && !token.usedAt && !token.revokedAt && token.expiresAt > now()
  return isAlive ? token.familyId : null
}

async function sessionIdOf({ store, now }: AuthContext, userId: string, presented: string | undefined): Promise<string | null> {
  const found = store.sessions && presented !== undefined ? await findBySessionToken(store.sessions, presented) : null
  return found?.session.userId === userId && isLive(found.session, now()) ? found.session.id : null
}
