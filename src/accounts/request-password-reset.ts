import { type AuthContext, transaction } from '../context'
import type { Locale } from '../http/locale'
import type { KnownDevice } from '../sessions/devices/known-device'
import type { UserRecord } from '../store/auth-store'
import { type LinkToken, replaceLink } from './email-links/email-link'
import { refusesEmailLink } from './email-links/refuses-email-link'
import { mailLink, mayMail } from './email-links/send-mail'
import { sendActivation } from './request-activation'

/**
 * Mails a reset link to an active account. A pending account gets an activation link. A click on that link does not keep the password of
 * the sign-up. Deactivated accounts and unknown addresses get no mail. If the host forbids mailed links for an account, the account gets no
 * mail.
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
  const link = await transaction(ctx, async (ctx) => {
    const locked = await ctx.store.users.lock(user.id)
    // The account may have a new address now. With a link to the old address, another person could log in.
    return locked?.isActive && locked.email === user.email ? replaceLink(ctx, locked, 'PASSWORD_RESET') : null
  })
  if (link) mailLink(ctx, user, 'password_reset', link, locale)
  return link
}
