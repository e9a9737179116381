import { announceChange } from '../accounts/undo/announce-change'
import { type AuthContext, transaction } from '../context'
import { hasPasswords } from '../core/config/every-setting'
import { InvalidCredentialsError, MfaNotEnrolledError, UnauthorizedError } from '../core/errors'
import type { Locale } from '../http/locale'
import { hasPassword } from '../passwords/verify-password'
import { endOtherSessions, forgetMethod, type KeptSession } from '../sessions/log-out'
import { holdSession } from '../sessions/reauthentication/fresh-session'
import { withPassword } from '../sessions/reauthentication/reauthenticate'
import { findActiveUser } from '../sessions/reauthentication/request-session'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { emitFactor, hashRecoveryCode, newRecoveryCodes, recoveryCodesOf } from './accept-code'
import { type PresentedFactor, withFactor } from './irreversible-code'

export interface Disabling extends PresentedFactor {
  userId: string
  /** The account's password. Required if passwords are on, but not for a generated password, which nobody knows. */
  password?: string | undefined
  /** The session that stays. Every other session of the account is revoked. */
  keep?: KeptSession | undefined
  /** The session of the request. The session must still be live. `disableTotp` does not revoke this session. */
  session?: SessionRecord | null | undefined
  /** Language of the notices. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * Invalidates the challenges and revokes every other session. The session that stays loses `otp`.
 * @throws MfaNotEnrolledError, InvalidCredentialsError, MfaCodeInvalidError, MfaThrottledError, TooManyRequestsError, PasskeyRejectedError,
 * MfaFactorTooNewError (the passkey was added less than 24 hours ago)
 */
export async function disableTotp(ctx: AuthContext, { userId, password, session, keep, locale, ...presented }: Disabling): Promise<void> {
  const user = await findEnrolled(ctx, userId)
  if (hasPasswords(ctx.settings) && hasPassword(user)) await verifyOwnPassword(ctx, user, password, session)
  // A password reset since the verification cancels this request.
  const requireSamePassword = (locked: UserRecord) => {
    if (locked.hashedPassword !== user.hashedPassword) throw new InvalidCredentialsError()
    return locked
  }
  const factor = await announceChange(ctx, userId, { topic: 'mfa_disabled', locale }, (leaveUndoPoint) =>
    withFactor(ctx, { userId, session, locale }, presented, (accept) =>
      transaction(ctx, async (ctx) => {
        const user = requireSamePassword(await lockEnrolled(ctx, userId))
        await holdSession(ctx, session)
        const { factor, ...confirmed } = await accept(ctx, user)
        await leaveUndoPoint(ctx, { user, ...confirmed })
        await ctx.store.users.update(userId, { totpSecret: null, totpEnabledAt: null, totpLastStep: null, updatedAt: ctx.now() })
        await recoveryCodesOf(ctx).deleteForUser(userId)
        ctx.events.emit('mfa.disabled', { userId })
        await forgetFactor(ctx, await endOtherSessions(ctx, userId, session ? { sessionId: session.id } : keep))
        return factor
      }),
    ),
  )
  emitFactor(ctx, userId, factor)
}

async function forgetFactor(ctx: AuthContext, sessionId: string | null): Promise<void> {
  const kept = sessionId === null ? null : await ctx.store.sessions?.find({ id: sessionId })
  if (kept) await forgetMethod(ctx, kept.session, 'otp')
}

export interface Regeneration extends PresentedFactor {
  userId: string
  /** The session of the request. The session must still be live. */
  session?: SessionRecord | null | undefined
  /** Language of the notices. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/** Shown once. @throws MfaNotEnrolledError, MfaCodeInvalidError, MfaThrottledError, PasskeyRejectedError, MfaFactorTooNewError */
export async function regenerateRecoveryCodes(
  ctx: AuthContext,
  { userId, session, locale, ...presented }: Regeneration,
): Promise<string[]> {
  await findEnrolled(ctx, userId)
  const codes = newRecoveryCodes(ctx.settings.mfaRecoveryCodesCount)
  const hashes = codes.map((code) => hashRecoveryCode(userId, code))
  const factor = await announceChange(ctx, userId, { topic: 'recovery_codes_regenerated', locale }, (leaveUndoPoint) =>
    withFactor(ctx, { userId, session, locale }, presented, (accept) =>
      transaction(ctx, async (ctx) => {
        const user = await lockEnrolled(ctx, userId)
        await holdSession(ctx, session)
        const { factor, ...confirmed } = await accept(ctx, user)
        await leaveUndoPoint(ctx, { user, ...confirmed })
        await recoveryCodesOf(ctx).replaceForUser(userId, hashes)
        return factor
      }),
    ),
  )
  emitFactor(ctx, userId, factor)
  return codes
}

async function verifyOwnPassword(
  ctx: AuthContext,
  user: UserRecord,
  password: string | undefined,
  session: SessionRecord | null | undefined,
): Promise<void> {
  if (password === undefined) throw new InvalidCredentialsError()
  await withPassword(ctx, user, password, async () => undefined, session)
}

/** @throws UnauthorizedError, AccountInactiveError, MfaNotEnrolledError */
export async function findEnrolled(ctx: AuthContext, userId: string): Promise<UserRecord> {
  const user = await findActiveUser(ctx, userId)
  if (!user.totpEnabledAt) throw new MfaNotEnrolledError()
  return user
}

/** `findEnrolled` again, because the row may have changed. */
export async function lockEnrolled(ctx: AuthContext, userId: string): Promise<UserRecord> {
  const user = await ctx.store.users.lock(userId)
  if (!user?.isActive) throw new UnauthorizedError()
  if (!user.totpEnabledAt) throw new MfaNotEnrolledError()
  return user
}
