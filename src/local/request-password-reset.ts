import { type AuthContext, unitOfWork } from '../context'
import type { KnownDevice } from '../device/known-device'
import type { Locale } from '../http/locale'
import { type LinkToken, replaceLink } from '../mailbox/email-link'
import { refusesEmailLink } from '../mailbox/refuses-email-link'
import { mailLink, mayMail } from '../mailbox/send-mail'
import type { UserRecord } from '../store/auth-store'
import { sendActivation } from './request-activation'

/**
 * A reset link for an active account. One that was never activated gets an activation link instead, which alone does not keep the
 * password of the signup; a deactivated or refusing one, and nobody, get nothing.
 */
export async function sendPasswordReset(
  ctx: AuthContext,
  user: UserRecord | null,
  locale: Locale,
  { device = null }: { device?: KnownDevice | null } = {},
): Promise<LinkToken | null> {
  if (!user) return null
  if (!user.isActive) {
    await sendActivation(ctx, user, locale, { forgotPassword: true, device })
    return null
  }
  if ((await refusesEmailLink(ctx, user)) || !(await mayMail(ctx, user, 'PASSWORD_RESET', { device }))) return null
  const link = await unitOfWork(ctx, async (ctx) => {
    const locked = await ctx.store.users.lock(user.id)
    // A link to a mailbox the account has left would let its former reader in.
    return locked?.isActive && locked.email === user.email ? replaceLink(ctx, locked, 'PASSWORD_RESET') : null
  })
  if (link) mailLink(ctx, user, 'password_reset', link, locale)
  return link
}
