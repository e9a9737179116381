import { mailNotice } from '../accounts/email-links/send-mail'
import type { AuthContext } from '../context'
import { MfaCodeInvalidError, MfaThrottledError } from '../core/errors'
import type { Locale } from '../http/locale'
import { takeUnit } from '../rate-limits/take-unit'
import { type TypedCode, takeCode } from './code-limits'

/**
 * After this many wrong codes the owner gets a notice. The client has already passed the first factor, so an attacker may know the
 * password.
 */
const toldAt = 3

/**
 * Runs an attempt at an account's active second factor. Counts the attempt before the code is verified. All routes share this count. A
 * success resets the count of wrong codes. A new first step of a login does not reset the count. At the third wrong code the owner gets a
 * mail.
 * @throws MfaThrottledError, and the errors of the attempt
 */
export async function guardedAttempt<T>(
  ctx: AuthContext,
  typed: TypedCode & { locale?: Locale | undefined },
  attempt: () => Promise<T>,
): Promise<T> {
  const taken = await takeCode(ctx, typed)
  try {
    const result = await attempt()
    await taken.succeed()
    return result
  } catch (error) {
    // An error other than a wrong code gives the attempt back.
    if (!(error instanceof MfaCodeInvalidError)) await taken.giveBack()
    else await announceWrongCode(ctx, typed, await taken.fail())
    throw error
  }
}

async function announceWrongCode(
  ctx: AuthContext,
  { userId, locale }: { userId: string; locale?: Locale | undefined },
  count: number,
): Promise<void> {
  ctx.events.emit('mfa.failed', { userId })
  const user = count === toldAt ? await ctx.store.users.find(userId) : null
  if (user) mailNotice(ctx, user, 'wrong_codes', locale)
}

/** Runs an attempt at a factor that is not active yet. This attempt has a separate rate limit. */
export async function guardedConfirmation<T>(ctx: AuthContext, userId: string, attempt: () => Promise<T>): Promise<T> {
  const taken = await takeUnit(ctx, ctx.rateLimits.mfa, ['mfa_confirm:account', userId], MfaThrottledError)
  try {
    const result = await attempt()
    await taken.clear()
    return result
  } catch (error) {
    if (!(error instanceof MfaCodeInvalidError)) await taken.giveBack()
    else ctx.events.emit('mfa.failed', { userId })
    throw error
  }
}
