import { type AuthContext, transaction } from '../context'
import type { Locale } from '../http/locale'
import type { KnownDevice } from '../sessions/devices/device-cookie'
import type { UserRecord } from '../store/auth-store'
import { ACTIVATION_WITHHELD, isPending, type LinkToken, refusesEmailLink, replaceLink } from './email-links/email-link'
import { mailLink, mayMail } from './email-links/send-mail'
import { newSignupMark, type SignupMark, signupMarkOf, signupMarkToText } from './email-verification/signup-binding'
import { keepImported } from './sign-up-again'

/**
 * Mails a new activation link to a pending account. Returns null for an account that is not pending, and for no account.
 *
 * `forgotPassword` is true if the person requested the link with "forgot my password". An attacker may have signed up with the address and
 * wait until the owner verifies it. So a click on such a link never keeps the password of the sign-up. `mark` identifies the sign-up to
 * which the link belongs. Default: the mark of the account's newest unused link.
 */
export async function sendActivation(
  ctx: AuthContext,
  user: UserRecord | null,
  locale: Locale,
  { forgotPassword = false, mark, device = null }: { forgotPassword?: boolean; mark?: SignupMark; device?: KnownDevice | null } = {},
): Promise<LinkToken | typeof ACTIVATION_WITHHELD | null> {
  if (!user || !(await isPending(ctx, user))) return null
  if (await refusesEmailLink(ctx, user)) return ACTIVATION_WITHHELD
  if (!(await mayMail(ctx, user, 'ACTIVATION', { device }))) return null
  const issued = await transaction(ctx, async (ctx) => {
    const locked = await ctx.store.users.lock(user.id)
    // The library sends no mail if the account has another address now.
    if (locked?.email !== user.email || !(await isPending(ctx, locked))) return null
    // If the password has changed, a newer sign-up has replaced the sign-up of the mark. The replaced sign-up gets no link.
    if (mark && locked.hashedPassword !== user.hashedPassword) return null
    if (!mark) await keepImported(ctx, locked)
    const known = mark ?? (await newestMark(ctx, locked))
    // After "forgot my password" the link needs a mark, because only a mark can say that the link is not lenient.
    const signup = known ?? (forgotPassword ? newSignupMark(ctx, locked) : null)
    const payload = signup && signupMarkToText({ ...signup, isLenient: !forgotPassword })
    return { link: await replaceLink(ctx, locked, 'ACTIVATION', payload), signup: known }
  })
  if (!issued) return null
  mailLink(ctx, user, 'activation', issued.link, locale, issued.signup ? { signup: issued.signup } : {})
  return issued.link
}

/** Returns the mark of the newest unused link, even if the link has expired. */
async function newestMark(ctx: AuthContext, { id }: UserRecord): Promise<SignupMark | null> {
  const links = await ctx.store.userTokens.listOpen(id, 'ACTIVATION', new Date(0))
  const newest = links.at(-1)
  return newest ? signupMarkOf(newest) : null
}

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
