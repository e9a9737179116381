import { endOneShots } from '../accounts/email-links/email-logins-of'
import { type AuthContext, transaction } from '../context'
import { endOtherSessions } from '../sessions/log-out'
import { type ActingAdmin, lockTarget } from './lock-target'
import { recordTrace } from './record-trace'

/**
 * Deactivates an account. Revokes its sessions, its pending second-factor steps and its mailed links.
 * @throws NotFoundError, ConflictError (`lockTarget`), ForbiddenError
 */
export async function deactivate(ctx: AuthContext, userId: string, acting?: ActingAdmin): Promise<void> {
  await transaction(ctx, async (ctx) => {
    const now = ctx.now()
    const user = await lockTarget(ctx, userId, acting, { takesPower: true })
    await ctx.store.users.update(userId, { isActive: false, activatedAt: user.activatedAt ?? now, updatedAt: now })
    await endOneShots(ctx, user)
    await recordTrace(ctx, user)
    await endOtherSessions(ctx, userId)
  })
  ctx.events.emit('account.deactivated', { userId })
}
