import { type AuthContext, unitOfWork } from '../context'
import type { Locale } from '../http/locale'
import { type LinkToken, replaceLink } from '../mailbox/email-link'
import { isPending } from '../mailbox/is-pending'
import { ACTIVATION_WITHHELD, refusesEmailLink } from '../mailbox/refuses-email-link'
import { mailLink, mayMail } from '../mailbox/send-mail'
import type { UserRecord } from '../store/auth-store'

/**
 * The payload of an activation link that was asked for by "forgot my password". Whoever signed up with this address may be
 * a stranger who waits for its owner to prove it: redeemed, such a link takes the stranger's password away
 * (security bar R-060).
 */
export const replacesPassword = 'replaces_password'

/** A fresh activation link for an account that still waits for one; null for every other, and for nobody. */
export async function sendActivation(
  ctx: AuthContext,
  user: UserRecord | null,
  locale: Locale,
  payload: typeof replacesPassword | null = null,
): Promise<LinkToken | typeof ACTIVATION_WITHHELD | null> {
  if (!user || !(await isPending(ctx, user))) return null
  if (await refusesEmailLink(ctx, user)) return ACTIVATION_WITHHELD
  if (!(await mayMail(ctx, user))) return null
  const link = await unitOfWork(ctx, async (ctx) => {
    const locked = await ctx.store.users.lock(user.id)
    // The mail goes to the address that was asked about: not if the account has another one by now.
    const isStill = locked?.email === user.email && (await isPending(ctx, locked))
    return isStill ? replaceLink(ctx, locked, 'ACTIVATION', payload) : null
  })
  if (link) mailLink(ctx, user, 'activation', link, locale)
  return link
}
