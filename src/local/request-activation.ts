import { type AuthContext, unitOfWork } from '../context'
import type { KnownDevice } from '../device/known-device'
import { newSignupMark, type SignupMark, signupMarkOf, signupMarkToText } from '../first-proof/signup-binding'
import type { Locale } from '../http/locale'
import { type LinkToken, replaceLink } from '../mailbox/email-link'
import { isPending } from '../mailbox/is-pending'
import { ACTIVATION_WITHHELD, refusesEmailLink } from '../mailbox/refuses-email-link'
import { mailLink, mayMail } from '../mailbox/send-mail'
import type { UserRecord } from '../store/auth-store'

/**
 * Mails a new activation link to a pending account. Returns null for any other account, and for none.
 *
 * `forgotPassword`: it was requested by "forgot my password". An attacker may have signed up with this address and wait for its owner to
 * verify it. So this link alone never keeps the password of the sign-up. Nothing else changes.
 * `mark`: the sign-up that the link belongs to; default: that of the older link.
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
  const issued = await unitOfWork(ctx, async (ctx) => {
    const locked = await ctx.store.users.lock(user.id)
    // No mail is sent if the account has another address by now.
    if (locked?.email !== user.email || !(await isPending(ctx, locked))) return null
    // A newer sign-up has replaced this one, so its password is not from the browser that the mark names.
    if (mark && locked.hashedPassword !== user.hashedPassword) return null
    const known = mark ?? (await newestMark(ctx, locked))
    // A link of release 0.1.0 belongs to no sign-up that we know.
    const signup = known ?? (forgotPassword ? newSignupMark(ctx) : null)
    const payload = signup && signupMarkToText({ ...signup, isLenient: !forgotPassword })
    return { link: await replaceLink(ctx, locked, 'ACTIVATION', payload), signup: known }
  })
  if (!issued) return null
  mailLink(ctx, user, 'activation', issued.link, locale, issued.signup ? { signup: issued.signup } : {})
  return issued.link
}

/** Returns the mark of the newest link that was not used, even if it has expired. */
async function newestMark(ctx: AuthContext, { id }: UserRecord): Promise<SignupMark | null> {
  const links = await ctx.store.userTokens.listOpen(id, 'ACTIVATION', new Date(0))
  const newest = links.at(-1)
  return newest ? signupMarkOf(newest) : null
}
