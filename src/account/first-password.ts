import type { AuthMethod } from '../amr'
import { type AuthContext, unitOfWork } from '../context'
import { InvalidTokenError, PasswordAlreadySetError, UnauthorizedError } from '../errors'
import type { Locale } from '../http/locale'
import { checkPassword } from '../passwords/check-password'
import { hasPassword } from '../passwords/unusable-password'
import type { Finality } from '../step-up/finality'
import { findActiveUser } from '../step-up/find-active-user'
import { holdSession } from '../step-up/fresh-session'
import { requireFactor } from '../step-up/require-factor'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { announceChange } from '../undo/announce-change'

export interface FirstPassword {
  userId: string
  newPassword: string
  /** How the session authenticated. Left out for a call without a session. The caller is then responsible for authentication. */
  amr?: readonly AuthMethod[] | undefined
  /** The session of the request. If the session ends meanwhile, the call fails. */
  session?: SessionRecord | null | undefined
  /** If not false, an undo link cannot revert the change (`Finality`). */
  isFinal?: Finality | undefined
  /** Language of the notice. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * Sets the password of an account without a password. For example, an account has no password if a login by a provider created it, or if a
 * take-over (`first-proof/take-over.ts`) removed the password.
 * @throws PasswordAlreadySetError, ValidationError (the password), UnauthorizedError (the account was deleted), AccountInactiveError,
 * MfaRequiredError, InvalidTokenError (the session has ended), TooManyRequestsError
 */
export async function setFirstPassword(
  ctx: AuthContext,
  { userId, newPassword, amr, session, isFinal, locale }: FirstPassword,
): Promise<void> {
  const seen = await findActiveUser(ctx, userId)
  requireFactor(ctx, seen, amr)
  if (hasPassword(seen)) throw new PasswordAlreadySetError()
  await checkPassword(ctx, newPassword, seen)
  const hashedPassword = await ctx.hasher.hash(newPassword)
  await announceChange(ctx, userId, { topic: 'password_changed', locale }, (leaveUndoPoint) =>
    unitOfWork(ctx, async (ctx) => {
      const user = await ctx.store.users.lock(userId)
      if (!user?.isActive) throw new UnauthorizedError()
      await holdSession(ctx, session)
      // If the unusable hash changed, the sessions were revoked meanwhile. Without a session table, only that hash shows the revocation.
      if (!hasPassword(user) && user.hashedPassword !== seen.hashedPassword) throw new InvalidTokenError()
      await store(ctx, user, hashedPassword, () => leaveUndoPoint(ctx, { user, isFinal }))
    }),
  )
  ctx.events.emit('password.changed', { userId, by: 'change' })
}

/** Stores the password. Throws if another request has stored a password first. */
async function store(ctx: AuthContext, user: UserRecord, hashedPassword: string, leaveUndoPoint: () => Promise<void>): Promise<void> {
  if (hasPassword(user)) throw new PasswordAlreadySetError()
  const now = ctx.now()
  await leaveUndoPoint()
  await ctx.store.users.update(user.id, { hashedPassword, passwordSetAt: now, updatedAt: now })
  await ctx.store.userTokens.consumeAllForUser(user.id, now, ['PASSWORD_RESET', 'EMAIL_CHANGE'])
}
