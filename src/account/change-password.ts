import type { AuthMethod } from '../amr'
import { type AuthContext, unitOfWork } from '../context'
import { InvalidCredentialsError, MfaRequiredError } from '../errors'
import type { Locale } from '../http/locale'
import { mailNotice } from '../mailbox/send-mail'
import { checkPassword } from '../passwords/check-password'
import { endOtherSessions, type KeptSession } from '../session/log-out'
import { findActiveUser } from '../step-up/find-active-user'
import { requireFactor } from '../step-up/require-factor'
import { withPassword } from '../step-up/with-password'
import type { UserRecord } from '../store/auth-store'

export interface PasswordChange {
  userId: string
  currentPassword: string
  newPassword: string
  /** How the session that asks began; left out: a call without one, whose caller answers for it. */
  amr?: readonly AuthMethod[] | undefined
  /** The session that goes on; every other one of the account ends. */
  keep?: KeptSession | undefined
  /** Of the notice. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * A new password for whoever knows the old one. Every other session ends, and so do links that were mailed to reset the
 * password or change the address.
 * @throws ValidationError (the new password), InvalidCredentialsError (the current one), TooManyRequestsError,
 *   UnauthorizedError (the account is gone), AccountInactiveError, MfaRequiredError (a factor is active, and the session has none)
 */
export async function changePassword(
  ctx: AuthContext,
  { userId, currentPassword, newPassword, amr, keep, locale }: PasswordChange,
): Promise<void> {
  const user = await findActiveUser(ctx, userId)
  requireFactor(ctx, user, amr)
  await checkPassword(ctx, newPassword, user)
  const hash = await withPassword(ctx, user, currentPassword, () => hashAndReplace(ctx, user, newPassword, keep))
  // A login may have stored a better hash of the same password between our look and our write: then we look again, once.
  if (hash !== null) await replaceAgain(ctx, await findActiveUser(ctx, userId), currentPassword, hash, keep)
  ctx.events.emit('password.changed', { userId, by: 'change' })
  mailNotice(ctx, user, 'password_changed', locale)
}

/** Null when it is done; else the hash, for another try. */
async function hashAndReplace(ctx: AuthContext, seen: UserRecord, newPassword: string, keep?: KeptSession): Promise<string | null> {
  const hashedPassword = await ctx.hasher.hash(newPassword)
  return (await unitOfWork(ctx, (ctx) => replacePassword(ctx, seen, hashedPassword, keep))) ? null : hashedPassword
}

async function replaceAgain(ctx: AuthContext, seen: UserRecord, currentPassword: string, hash: string, keep?: KeptSession): Promise<void> {
  await withPassword(ctx, seen, currentPassword, async () => {
    if (!(await unitOfWork(ctx, (ctx) => replacePassword(ctx, seen, hash, keep)))) throw new InvalidCredentialsError()
  })
}

/**
 * Only over the password that was just proven: of two changes at once, the second has to prove the first one's. False when
 * there is another one.
 */
async function replacePassword(ctx: AuthContext, seen: UserRecord, hashedPassword: string, keep?: KeptSession): Promise<boolean> {
  const now = ctx.now()
  const user = await ctx.store.users.lock(seen.id)
  if (!user?.isActive || user.hashedPassword !== seen.hashedPassword) return false
  // Decided without the factor: one that was confirmed meanwhile has ended the session that asks.
  if (seen.totpEnabledAt === null && user.totpEnabledAt !== null) throw new MfaRequiredError()
  await ctx.store.users.update(user.id, { hashedPassword, passwordSetAt: now, updatedAt: now })
  await ctx.store.userTokens.consumeAllForUser(user.id, now, 'PASSWORD_RESET')
  await ctx.store.userTokens.consumeAllForUser(user.id, now, 'EMAIL_CHANGE')
  await endOtherSessions(ctx, user.id, keep)
  return true
}
