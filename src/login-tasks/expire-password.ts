import { mailNotice } from '../accounts/email-links/send-mail'
import { type ActingAdmin, actorOf, lockTarget } from '../admin/change-user'
import { type AuthContext, transaction } from '../context'
import { ConfigurationError } from '../core/errors'
import { endOtherSessions } from '../sessions/log-out'

export interface PasswordExpiry {
  /** True: the account's sessions stay. Default false. */
  keepSessions?: boolean | undefined
}

/**
 * From now on the password is good only for a login that then sets a new one. Revokes every session, unless `keepSessions`.
 * @throws ConfigurationError without `newPasswordTask()`; NotFoundError, ForbiddenError
 */
export async function expirePassword(
  ctx: AuthContext,
  userId: string,
  acting?: ActingAdmin,
  { keepSessions = false }: PasswordExpiry = {},
): Promise<void> {
  if (!ctx.loginTasks?.newPassword)
    throw new ConfigurationError(
      'expirePassword() needs newPasswordTask() in the option loginTasks: otherwise nothing asks for a new password.',
    )
  const user = await transaction(ctx, async (ctx) => {
    const user = await lockTarget(ctx, userId, acting)
    const now = ctx.now()
    await ctx.store.users.update(userId, { passwordExpiredAt: now, updatedAt: now })
    if (!keepSessions) await endOtherSessions(ctx, userId, {}, { reason: 'account_changed', ...actorOf(acting) })
    ctx.events.emit('password.expired', { userId, actorId: acting?.by ?? null })
    return user
  })
  mailNotice(ctx, user, 'password_expired')
}
