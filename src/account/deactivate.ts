import { createHash, randomBytes } from 'node:crypto'
import { type AuthContext, unitOfWork } from '../context'
import { NotFoundError } from '../errors'
import { endOtherSessions } from '../session/log-out'
import { isLive } from '../session/server-session'
import type { UserRecord } from '../store/auth-store'

/**
 * Closes an account: no login, and everything that was open ends with it: sessions, refresh families, challenges, links.
 * @throws NotFoundError
 */
export async function deactivate(ctx: AuthContext, userId: string): Promise<void> {
  await unitOfWork(ctx, async (ctx) => {
    const now = ctx.now()
    const user = await ctx.store.users.lock(userId)
    if (!user) throw new NotFoundError()
    await ctx.store.users.update(userId, { isActive: false, activatedAt: user.activatedAt ?? now, updatedAt: now })
    await ctx.store.userTokens.consumeAllForUser(userId, now)
    if (!ctx.store.users.fields.has('activatedAt')) await leaveTrace(ctx, user)
    await endOtherSessions(ctx, userId)
  })
  ctx.events.emit('account.deactivated', { userId })
}

/** Ends every session of an account, of both kinds; how many were alive. */
export async function revokeSessions(ctx: AuthContext, userId: string): Promise<number> {
  const count = await unitOfWork(ctx, async (ctx) => {
    await ctx.store.users.lock(userId)
    const rows = (await ctx.store.sessions?.listForUser(userId)) ?? []
    const expired = rows.filter((session) => !isLive(session, ctx.now())) // their rows go too, and count for nothing
    return (await endOtherSessions(ctx, userId)) - expired.length
  })
  ctx.events.emit('session.revoked', { userId, count })
  return count
}

/**
 * Where no column says that an account was active once, a redeemed activation link does: without one, an account that was
 * closed before its first login would count as pending, and could activate itself again.
 */
async function leaveTrace(ctx: AuthContext, user: UserRecord): Promise<void> {
  const now = ctx.now()
  await ctx.store.userTokens.insert({
    userId: user.id,
    tokenHash: createHash('sha256').update(randomBytes(32)).digest('hex'),
    purpose: 'ACTIVATION',
    payload: null,
    expiresAt: new Date(now.getTime() + 36_525 * 86_400_000), // never purged
    usedAt: now,
    createdAt: now,
  })
}
