import { type AuthContext, unitOfWork } from '../context'
import type { Locale } from '../http/locale'
import { type LinkToken, replaceLink } from '../mailbox/email-link'
import { isPending } from '../mailbox/is-pending'
import { ACTIVATION_WITHHELD, refusesEmailLink } from '../mailbox/refuses-email-link'
import { mailLink, mayMail } from '../mailbox/send-mail'
import { unusablePassword } from '../passwords/unusable-password'
import type { UserRecord } from '../store/auth-store'

/**
 * A fresh activation link for an account that still waits for one; null for every other, and for nobody.
 *
 * `forgotPassword`: it was asked for by "forgot my password". Whoever signed up with this address may be a stranger who
 * waits for its owner to prove it; from here on nobody knows the account's password, whichever link activates it
 * (security bar R-060).
 */
export async function sendActivation(
  ctx: AuthContext,
  user: UserRecord | null,
  locale: Locale,
  { forgotPassword = false } = {},
): Promise<LinkToken | typeof ACTIVATION_WITHHELD | null> {
  if (!user || !(await isPending(ctx, user))) return null
  if (await refusesEmailLink(ctx, user)) return ACTIVATION_WITHHELD
  if (!(await mayMail(ctx, user))) return null
  const link = await unitOfWork(ctx, async (ctx) => {
    const locked = await ctx.store.users.lock(user.id)
    // The mail goes to the address that was asked about: not if the account has another one by now.
    if (locked?.email !== user.email || !(await isPending(ctx, locked))) return null
    if (forgotPassword)
      await ctx.store.users.update(locked.id, { hashedPassword: unusablePassword(), passwordSetAt: null, updatedAt: ctx.now() })
    return replaceLink(ctx, locked, 'ACTIVATION')
  })
  if (link) mailLink(ctx, user, 'activation', link, locale)
  return link
}
