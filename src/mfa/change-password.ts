import { type AuthContext, unitOfWork } from '../context'
import type { Locale } from '../http/locale'
import { mailNotice } from '../mailbox/send-mail'
import { checkPassword } from '../passwords/check-password'
import { endOtherSessions, type KeptSession } from '../session/log-out'
import { findEnrolled, lockEnrolled } from './disable'
import { guardedAttempt } from './guarded-attempt'
import { acceptSecondFactor, announceFactor } from './second-factor'

export interface PasswordChangeWithMfa {
  userId: string
  code: string
  newPassword: string
  /** The session that goes on; every other one of the account ends. */
  keep?: KeptSession | undefined
  /** Of the notices. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * A new password for a signed-in person who shows the second factor instead of the old password. Works on an enrolled
 * account also while the second factor is switched off for logins.
 * @throws MfaNotEnrolledError, ValidationError (the password), MfaCodeInvalidError, MfaThrottledError
 */
export async function changePasswordWithMfa(
  ctx: AuthContext,
  { userId, code, newPassword, keep, locale }: PasswordChangeWithMfa,
): Promise<void> {
  const user = await findEnrolled(ctx, userId)
  await checkPassword(ctx, newPassword, user)
  const factor = await guardedAttempt(ctx, userId, async () => {
    const hashedPassword = await ctx.hasher.hash(newPassword) // before the unit: it is slow
    return unitOfWork(ctx, async (ctx) => {
      const now = ctx.now()
      const factor = await acceptSecondFactor(ctx, await lockEnrolled(ctx, userId), code)
      await ctx.store.users.update(userId, { hashedPassword, passwordSetAt: now, updatedAt: now })
      await ctx.store.userTokens.consumeAllForUser(userId, now, 'PASSWORD_RESET')
      await ctx.store.userTokens.consumeAllForUser(userId, now, 'EMAIL_CHANGE')
      await endOtherSessions(ctx, userId, keep)
      return factor
    })
  })
  ctx.events.emit('password.changed', { userId, by: 'change' })
  mailNotice(ctx, user, 'password_changed', locale)
  announceFactor(ctx, user, factor, locale)
}
