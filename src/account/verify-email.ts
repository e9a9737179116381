import { type AuthContext, unitOfWork } from '../context'
import { InvalidTokenError } from '../errors'
import type { Locale } from '../http/locale'
import { findLink, type LinkToken, replaceLink, spendLink } from '../mailbox/email-link'
import { recordMailboxProof } from '../mailbox/record-proof'
import { refusesEmailLink } from '../mailbox/refuses-email-link'
import { mailLink, mayMail } from '../mailbox/send-mail'
import type { UserRecord, UserTokenRecord } from '../store/auth-store'

/** A link to the account's own address, bound to it: redeemed, it proves that the owner reads it. Null: nothing was sent. */
export async function sendEmailVerification(ctx: AuthContext, user: UserRecord, locale: Locale): Promise<LinkToken | null> {
  if ((await refusesEmailLink(ctx, user)) || !(await mayMail(ctx, user))) return null
  const link = await unitOfWork(ctx, async (ctx) => {
    const locked = await ctx.store.users.lock(user.id)
    return isStill(locked, user.email) ? replaceLink(ctx, locked, 'EMAIL_VERIFICATION', user.email) : null
  })
  if (link) mailLink(ctx, user, 'email_verification', link, locale)
  return link
}

/**
 * Redeems a verification link: the address counts as proven, and identities linked before are gone unless they stand for
 * it (contract section 13 (b)).
 * @throws InvalidTokenError, also when the account has another address by now, or is not active
 */
export async function confirmEmail(ctx: AuthContext, token: string): Promise<void> {
  const link = await findVerification(ctx, token)
  const removed = await unitOfWork(ctx, async (ctx) => {
    const user = await ctx.store.users.lock(link.userId)
    if (!isStill(user, link.payload)) throw new InvalidTokenError()
    await spendLink(ctx, link, 'EMAIL_VERIFICATION')
    await ctx.store.userTokens.consumeAllForUser(user.id, ctx.now(), 'EMAIL_VERIFICATION')
    return recordMailboxProof(ctx, user)
  })
  ctx.events.emit('email.verified', { userId: link.userId })
  for (const provider of removed) ctx.events.emit('identity.unlinked', { userId: link.userId, provider })
}

/** The open link, if it is still about the account's address; spends nothing. @throws InvalidTokenError */
export async function findVerification(ctx: AuthContext, token: string): Promise<UserTokenRecord> {
  const link = await findLink(ctx, token, 'EMAIL_VERIFICATION')
  if (!isStill(await ctx.store.users.find(link.userId), link.payload)) throw new InvalidTokenError()
  return link
}

function isStill(user: UserRecord | null, address: string | null): user is UserRecord {
  return user?.isActive === true && user.email === address
}
