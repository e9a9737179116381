import { type AuthContext, unitOfWork } from '../context'
import { forgetWrongCodes } from '../factor/code-limits'
import { guardedAttempt } from '../factor/guarded-attempt'
import { acceptSecondFactor, confirmedBy, emitFactor } from '../factor/second-factor'
import type { Locale } from '../http/locale'
import { checkPassword } from '../passwords/check-password'
import { endOtherSessions, type KeptSession } from '../session/log-out'
import { holdSession } from '../step-up/fresh-session'
import { refuseYoungFactor } from '../step-up/young-credential'
import type { SessionRecord } from '../store/auth-store'
import { announceChange } from '../undo/announce-change'
import { findEnrolled, lockEnrolled } from './disable'

export interface PasswordChangeWithMfa {
  userId: string
  code: string
  newPassword: string
  /** The session that goes on; every other one of the account ends. */
  keep?: KeptSession | undefined
  /** The session that asks: it goes on, and has to be alive still. */
  session?: SessionRecord | null | undefined
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
  { userId, code, newPassword, keep, session, locale }: PasswordChangeWithMfa,
): Promise<void> {
  const user = await findEnrolled(ctx, userId)
  await checkPassword(ctx, newPassword, user)
  const factor = await announceChange(ctx, userId, { topic: 'password_changed', locale }, (leaveUndoPoint) =>
    guardedAttempt(ctx, { userId, code, locale }, async () => {
      const hashedPassword = await ctx.hasher.hash(newPassword) // before the unit: it is slow
      return unitOfWork(ctx, async (ctx) => {
        const now = ctx.now()
        const user = await lockEnrolled(ctx, userId)
        await holdSession(ctx, session)
        if (session !== undefined) refuseYoungFactor(ctx, user)
        const factor = await acceptSecondFactor(ctx, user, code)
        await leaveUndoPoint(ctx, { user, ...confirmedBy(ctx, user, factor) })
        await ctx.store.users.update(userId, { hashedPassword, passwordSetAt: now, updatedAt: now })
        await ctx.store.userTokens.consumeAllForUser(userId, now, 'PASSWORD_RESET')
        await endOtherSessions(ctx, userId, session ? { sessionId: session.id } : keep)
        return factor
      })
    }),
  )
  await forgetWrongCodes(ctx, userId)
  ctx.events.emit('password.changed', { userId, by: 'change' })
  emitFactor(ctx, userId, factor)
}
