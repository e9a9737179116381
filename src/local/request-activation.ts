import { type AuthContext, unitOfWork } from '../context'
import type { Locale } from '../http/locale'
import { type LinkToken, replaceLink } from '../mailbox/email-link'
import { isPending } from '../mailbox/is-pending'
import { mailLink, mayMail } from '../mailbox/send-mail'
import type { UserRecord } from '../store/auth-store'
import { ACTIVATION_WITHHELD, refusesEmailLink } from './refuses-email-link'

/** A fresh activation link for an account that still waits for one; null for every other, and for nobody. */
export async function sendActivation(
  ctx: AuthContext,
  user: UserRecord | null,
  locale: Locale,
): Promise<LinkToken | typeof ACTIVATION_WITHHELD | null> {
  if (!user || !(await isPending(ctx, user))) return null
  if (await refusesEmailLink(ctx, user)) return ACTIVATION_WITHHELD
  if (!(await mayMail(ctx, user))) return null
  const link = await unitOfWork(ctx, async (ctx) => {
    const locked = await ctx.store.users.lock(user.id)
    return locked && (await isPending(ctx, locked)) ? replaceLink(ctx, locked, 'ACTIVATION') : null
  })
  if (link) mailLink(ctx, user, 'activation', link, locale)
  return link
}
