import { createHash, randomBytes } from 'node:crypto'
import type { AuthContext } from '../context'
import type { UserRecord } from '../store/auth-store'

/**
 * Where no column says that an account was active once, a redeemed activation link does: without one, an account that was
 * closed before its first login would count as pending, and could activate itself again.
 */
export async function leaveTrace(ctx: AuthContext, user: UserRecord): Promise<void> {
  if (ctx.store.users.fields.has('activatedAt')) return
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
