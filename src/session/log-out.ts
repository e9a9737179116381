import { type AuthContext, unitOfWork } from '../context'
import { hashRefreshToken, refreshTokensOf } from './refresh-token'

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
  const now = ctx.now()
  await ctx.store.users.lock(userId)
  const families = await refreshTokensOf(ctx).revokeForUser(userId, now)
  const sessions = (await ctx.store.sessions?.deleteForUser(userId)) ?? 0
  return families + sessions
}
