import { createHash, randomBytes } from 'node:crypto'
import { type AuthContext, unitOfWork } from '../context'
import { endOtherSessions } from '../session/log-out'
import type { UserRecord } from '../store/auth-store'
import { type ActingAdmin, lockTarget } from './lock-target'

/**
 * Closes an account: no login, and everything that was open ends with it: sessions, refresh families, challenges, links.
 * @throws NotFoundError, ConflictError (`lockTarget`), ForbiddenError
 */
export async function deactivate(ctx: AuthContext, userId: string, { by }: ActingAdmin = {}): Promise<void> {
  await unitOfWork(ctx, async (ctx) => {
    const now = ctx.now()
    const user = await lockTarget(ctx, userId, { by, takesPower: true })
    await ctx.store.users.update(userId, { isActive: false, activatedAt: user.activatedAt ?? now, updatedAt: now })
    await ctx.store.userTokens.consumeAllForUser(userId, now)
    if (!ctx.store.users.fields.has('activatedAt')) await leaveTrace(ctx, user)
    await endOtherSessions(ctx, userId)
  })
  ctx.events.emit('account.deactivated', { userId })
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
