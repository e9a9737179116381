import { type AuthContext, unitOfWork } from '../context'
import { InvalidCredentialsError, MfaNotEnrolledError, UnauthorizedError } from '../errors'
import type { Locale } from '../http/locale'
import { mailNotice } from '../mailbox/send-mail'
import { hasPassword } from '../passwords/unusable-password'
import { endOtherSessions, type KeptSession } from '../session/log-out'
import { findActiveUser } from '../step-up/find-active-user'
import { withPassword } from '../step-up/with-password'
import type { UserRecord } from '../store/auth-store'
import { storeRecoveryCodes } from './enroll'
import { guardedAttempt } from './guarded-attempt'
import { newRecoveryCodes } from './recovery-codes'
import { acceptSecondFactor, announceFactor, recoveryCodesOf } from './second-factor'

export interface Disabling {
  userId: string
  /** Of an account that has one; an account whose password was generated has nothing to show. */
  password?: string | undefined
  code: string
  /** The session that goes on; every other one of the account ends. */
  keep?: KeptSession | undefined
  /** Of the notices. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * Takes the second factor off an account, with its recovery codes. Challenges end by it, and so does every other session.
 * @throws MfaNotEnrolledError, InvalidCredentialsError, MfaCodeInvalidError, MfaThrottledError, TooManyRequestsError
 */
export async function disableTotp(ctx: AuthContext, { userId, password, code, keep, locale }: Disabling): Promise<void> {
  const user = await findEnrolled(ctx, userId)
  if (hasPassword(user)) await provePassword(ctx, user, password)
  // The proof was of this password: a reset in between ends what was begun before it.
  const requireSamePassword = (locked: UserRecord) => {
    if (locked.hashedPassword !== user.hashedPassword) throw new InvalidCredentialsError()
    return locked
  }
  const factor = await guardedAttempt(ctx, userId, () =>
    unitOfWork(ctx, async (ctx) => {
      const factor = await acceptSecondFactor(ctx, requireSamePassword(await lockEnrolled(ctx, userId)), code)
      await ctx.store.users.update(userId, { totpSecret: null, totpEnabledAt: null, totpLastStep: null, updatedAt: ctx.now() })
      await recoveryCodesOf(ctx).deleteForUser(userId)
      await endOtherSessions(ctx, userId, keep)
      return factor
    }),
  )
  ctx.events.emit('mfa.disabled', { userId })
  mailNotice(ctx, user, 'mfa_disabled', locale)
  announceFactor(ctx, user, factor, locale)
}

export interface Regeneration {
  userId: string
  code: string
  /** Of the notices. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * A new set of recovery codes; the old set is dead. Shown once.
 * @throws MfaNotEnrolledError, MfaCodeInvalidError, MfaThrottledError
 */
export async function regenerateRecoveryCodes(ctx: AuthContext, { userId, code, locale }: Regeneration): Promise<string[]> {
  const user = await findEnrolled(ctx, userId)
  const codes = newRecoveryCodes(ctx.settings.mfaRecoveryCodesCount)
  const factor = await guardedAttempt(ctx, userId, () =>
    unitOfWork(ctx, async (ctx) => {
      const factor = await acceptSecondFactor(ctx, await lockEnrolled(ctx, userId), code)
      await storeRecoveryCodes(ctx, userId, codes)
      return factor
    }),
  )
  mailNotice(ctx, user, 'recovery_codes_regenerated', locale)
  announceFactor(ctx, user, factor, locale)
  return codes
}

async function provePassword(ctx: AuthContext, user: UserRecord, password: string | undefined): Promise<void> {
  if (password === undefined) throw new InvalidCredentialsError()
  await withPassword(ctx, user, password, async () => undefined)
}

/** @throws UnauthorizedError, AccountInactiveError, MfaNotEnrolledError */
export async function findEnrolled(ctx: AuthContext, userId: string): Promise<UserRecord> {
  const user = await findActiveUser(ctx, userId)
  if (!user.totpEnabledAt) throw new MfaNotEnrolledError()
  return user
}

/** Inside a unit: what was seen before may have changed. */
export async function lockEnrolled(ctx: AuthContext, userId: string): Promise<UserRecord> {
  const user = await ctx.store.users.lock(userId)
  if (!user?.isActive) throw new UnauthorizedError()
  if (!user.totpEnabledAt) throw new MfaNotEnrolledError()
  return user
}
