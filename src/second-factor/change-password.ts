import { announceChange } from '../accounts/undo/announce-change'
import { type AuthContext, transaction } from '../context'
import { UnauthorizedError } from '../core/errors'
import type { Locale } from '../http/locale'
import { checkPassword } from '../passwords/check-password'
import { hashPassword } from '../passwords/hash-password'
import { endOtherSessions, type KeptSession } from '../sessions/log-out'
import { refuseYoungFactor } from '../sessions/reauthentication/credential-age'
import { findActiveUser } from '../sessions/reauthentication/find-active-user'
import { holdSession } from '../sessions/reauthentication/fresh-session'
import { type CookieOfRequest, renewCookie, type StayingSession } from '../sessions/reissue-tokens'
import type { SessionRecord } from '../store/auth-store'
import { emitFactor } from './accept-code'
import { forgetWrongCodes } from './code-limits'
import { findEnrolled } from './disable'
import { type PresentedFactor, withFactor } from './presented-factor'

export interface PasswordChangeWithMfa extends PresentedFactor {
  userId: string
  newPassword: string
  /** The session that stays. The change revokes every other session of the account. */
  keep?: KeptSession | undefined
  /** The session of the request. The session must still be live. The change does not revoke this session. */
  session?: SessionRecord | null | undefined
  /** The cookie of the request. The change replaces its value. */
  cookie?: CookieOfRequest | null | undefined
  /** Language of the notices. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * Sets a new password. The person is logged in and shows a code or a passkey instead of the old password. A code needs an active second
 * factor and works even if `mfaEnabled` is off. A passkey needs no second factor.
 * @throws MfaNotEnrolledError, ValidationError (the password), MfaCodeInvalidError, MfaThrottledError, PasskeyRejectedError,
 *   MfaFactorTooNewError
 */
export async function changePasswordWithMfa(
  ctx: AuthContext,
  { userId, newPassword, keep, session, cookie, locale, ...presented }: PasswordChangeWithMfa,
): Promise<StayingSession> {
  const isByCode = presented.credential === undefined
  const user = await (isByCode ? findEnrolled(ctx, userId) : findActiveUser(ctx, userId))
  await checkPassword(ctx, newPassword, user)
  const { factor, ...staying } = await announceChange(ctx, userId, { topic: 'password_changed', locale }, (leaveUndoPoint) =>
    withFactor(ctx, { userId, session, locale }, presented, async (accept) => {
      const hashedPassword = await hashPassword(ctx, newPassword) // before the transaction, because hashing is slow
      return transaction(ctx, async (ctx) => {
        const now = ctx.now()
        const user = await ctx.store.users.lock(userId)
        if (!user?.isActive) throw new UnauthorizedError()
        const held = await holdSession(ctx, session)
        if (session !== undefined && isByCode) refuseYoungFactor(ctx, user)
        const { factor, ...confirmed } = await accept(ctx, user)
        await leaveUndoPoint(ctx, { user, ...confirmed })
        const changes = { hashedPassword, passwordSetAt: now, updatedAt: now }
        await ctx.store.users.update(userId, changes)
        await ctx.store.userTokens.consumeAllForUser(userId, now, 'PASSWORD_RESET')
        await endOtherSessions(ctx, userId, session ? { sessionId: session.id } : keep)
        return { factor, user: { ...user, ...changes }, cookie: await renewCookie(ctx, held, cookie) }
      })
    }),
  )
  await forgetWrongCodes(ctx, userId)
  ctx.events.emit('password.changed', { userId, by: 'change' })
  emitFactor(ctx, userId, factor)
  return staying
}
