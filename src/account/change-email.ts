import type { AuthMethod } from '../amr'
import { type AuthContext, unitOfWork } from '../context'
import { EmailTakenError, InvalidTokenError, ValidationError } from '../errors'
import { requireEmail } from '../http/email-address'
import type { Locale } from '../http/locale'
import { findLink, type LinkToken, replaceLink, spendLink } from '../mailbox/email-link'
import { refusesEmailLink } from '../mailbox/refuses-email-link'
import { mailLink, mailNotice, mayMail } from '../mailbox/send-mail'
import { findActiveUser } from '../step-up/find-active-user'
import { requireFactor } from '../step-up/require-factor'
import { withPassword } from '../step-up/with-password'
import { DuplicateRecordError, type UserRecord, type UserTokenRecord } from '../store/auth-store'

export interface EmailChange {
  userId: string
  newEmail: string
  currentPassword: string
  /** How the session that asks began; left out: a call without one, whose caller answers for it. */
  amr?: readonly AuthMethod[] | undefined
}

/** What a change needs before anything is mailed; nothing here tells whether the new address is taken. */
export interface ProvenEmailChange {
  user: UserRecord
  newEmail: string
  /** Who has the new address already. */
  owner: UserRecord | null
}

/**
 * The person's own word, by password, that the account shall have another address.
 * @throws ValidationError (no address, or the present one), InvalidCredentialsError, TooManyRequestsError,
 *   UnauthorizedError, AccountInactiveError
 */
export async function proveEmailChange(
  ctx: AuthContext,
  { userId, newEmail: given, currentPassword, amr }: EmailChange,
): Promise<ProvenEmailChange> {
  const newEmail = requireEmail(given)
  const user = await findActiveUser(ctx, userId)
  requireFactor(ctx, user, amr)
  if (newEmail === user.email) throw new ValidationError({ details: { errors: [{ path: 'new_email', rule: 'unchanged' }] } })
  const owner = await withPassword(ctx, user, currentPassword, () => ctx.store.users.findByEmail(newEmail))
  return { user, newEmail, owner }
}

/**
 * Mails the link to the new address, and a notice to the old one. A taken address gets no link; its owner is told. Null:
 * no link.
 */
export async function sendEmailChange(
  ctx: AuthContext,
  { user, newEmail, owner }: ProvenEmailChange,
  locale: Locale,
): Promise<LinkToken | null> {
  if (await refusesEmailLink(ctx, user)) return null
  mailNotice(ctx, user, 'email_change_requested', locale)
  if (owner) {
    mailNotice(ctx, owner, 'email_change_taken', locale)
    return null
  }
  if (!(await mayMail(ctx, { email: newEmail }))) return null
  const link = await unitOfWork(ctx, async (ctx) => {
    const locked = await ctx.store.users.lock(user.id)
    // The proof was of this very password: what a reset did in between ends what was begun before it.
    const isStill = locked?.isActive && locked.email === user.email && locked.hashedPassword === user.hashedPassword
    return isStill ? replaceLink(ctx, locked, 'EMAIL_CHANGE', newEmail) : null
  })
  // The new address has proven nothing yet: the mail to it does not repeat a name.
  if (link) mailLink(ctx, { ...user, email: newEmail, emailVerifiedAt: null }, 'email_change', link, locale)
  return link
}

/**
 * Redeems the link: the account has the new address, which is thereby proven, and every link mailed before is dead.
 * @throws InvalidTokenError; EmailTakenError when somebody else has the address by now, with nothing changed
 */
export async function confirmEmailChange(ctx: AuthContext, token: string, locale: Locale = ctx.settings.defaultLocale): Promise<void> {
  const { link, user } = await findEmailChange(ctx, token)
  try {
    await unitOfWork(ctx, (ctx) => redeem(ctx, link, user))
  } catch (error) {
    throw error instanceof DuplicateRecordError ? new EmailTakenError({ cause: error }) : error
  }
  ctx.events.emit('email.changed', { userId: user.id })
  mailNotice(ctx, user, 'email_changed', locale)
}

/** The open link and its account; spends nothing. @throws InvalidTokenError */
export async function findEmailChange(ctx: AuthContext, token: string): Promise<{ link: UserTokenRecord; user: UserRecord }> {
  const link = await findLink(ctx, token, 'EMAIL_CHANGE')
  const user = await ctx.store.users.find(link.userId)
  if (!user?.isActive || link.payload === null) throw new InvalidTokenError()
  return { link, user }
}

async function redeem(ctx: AuthContext, link: UserTokenRecord, seen: UserRecord): Promise<void> {
  const now = ctx.now()
  const user = await ctx.store.users.lock(link.userId)
  if (!user?.isActive || user.email !== seen.email || link.payload === null) throw new InvalidTokenError()
  await spendLink(ctx, link, 'EMAIL_CHANGE')
  await ctx.store.userTokens.consumeAllForUser(user.id, now)
  await ctx.store.users.update(user.id, { email: link.payload, emailVerifiedAt: now, updatedAt: now })
}
