import { type AuthContext, unitOfWork } from '../context'
import { hashRefreshToken, refreshTokensOf } from './refresh-token'
import { findBySessionToken, isLive } from './server-session'

/**
 * Ends the token's family, or every session of its user. Idempotent, and silent about tokens nobody knows (RFC 7009
 * section 2.2). A token of an ended family ends nothing more.
 */
export async function logOut(ctx: AuthContext, presented: string, options: { allSessions?: boolean } = {}): Promise<void> {
  const now = ctx.now()
  const token = await refreshTokensOf(ctx).find(hashRefreshToken(presented))
  if (!token) return
  const isLiveFamily = !token.revokedAt && token.familyExpiresAt > now
  const allSessions = options.allSessions === true && isLiveFamily
  await unitOfWork(ctx, async (ctx) => {
    if (!allSessions) return refreshTokensOf(ctx).revokeFamily(token.familyId, now)
    return endSessions(ctx, token.userId)
  })
  ctx.events.emit('logout', { userId: token.userId, allSessions })
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
  const families = await refreshTokensOf(ctx).revokeForUser(userId, ctx.now(), exceptFamilyId === null ? {} : { exceptFamilyId })
  const exceptId = keep.sessionId ?? (await sessionIdOf(ctx, userId, keep.sessionToken))
  const sessions = (await ctx.store.sessions?.deleteForUser(userId, exceptId === null ? {} : { exceptId })) ?? 0
  return families + sessions
}

/** Only an unspent token of this very user names a session: one that was rotated away names somebody else's by now. */
async function liveFamilyOf(ctx: AuthContext, userId: string, presented: string): Promise<string | null> {
  const token = await refreshTokensOf(ctx).find(hashRefreshToken(presented))
  const isAlive = token?.userId === userId && !token.usedAt && !token.revokedAt && token.expiresAt > ctx.now()
  return isAlive ? token.familyId : null
}

async function sessionIdOf({ store, now }: AuthContext, userId: string, presented: string | undefined): Promise<string | null> {
  const found = store.sessions && presented !== undefined ? await findBySessionToken(store.sessions, presented) : null
  return found?.session.userId === userId && isLive(found.session, now()) ? found.session.id : null
}
