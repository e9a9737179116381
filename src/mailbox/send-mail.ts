import type { AuthContext } from '../context'
import { TooManyRequestsError } from '../errors'
import type { Locale } from '../http/locale'
import { takeUnit } from '../limits/take-unit'
import type { LinkTopic, NoticeTopic } from '../mail/topics'
import { writeMail } from '../mail/write-mail'
import type { UserRecord } from '../store/auth-store'
import type { LinkToken } from './email-link'

/** Whom a mail goes to: an account's row, or one with another address in its place. */
export type Recipient = Pick<UserRecord, 'id' | 'email' | 'name' | 'emailVerifiedAt'>

/**
 * Whether the address may get one more mail, whatever it is about; taken before the link is made, so that no link dies
 * for one that is never sent. Without a mailer there is nothing to count. Observers hear `throttled` of a refusal.
 */
export async function mayMail(ctx: AuthContext, { email }: Pick<UserRecord, 'email'>): Promise<boolean> {
  if (!ctx.postman) return true
  try {
    await takeUnit(ctx, ctx.budgets.mail, ['mail', email])
    return true
  } catch (error) {
    if (error instanceof TooManyRequestsError) return false
    throw error
  }
}

/**
 * Goes to the stored address, after the commit and off the response path. Take the unit with `mayMail` before.
 *
 * The one mail to another address is `email_change`: pass `{ ...user, email: newEmail, emailVerifiedAt: null }`, to
 * `mayMail` too; whoever reads there may be a stranger.
 */
export function mailLink(
  ctx: AuthContext,
  recipient: Recipient,
  topic: LinkTopic,
  { url, expiresAt }: Pick<LinkToken, 'url' | 'expiresAt'>,
  locale: Locale,
): void {
  const link = { url, expiresAt, issuedAt: ctx.now() }
  ctx.postman?.post(writeMail(ctx, { ...addressed(recipient), topic, locale, link }), recipient.id)
}

/**
 * Tells the owner of what happened to the account; never makes the operation fail, which is done already. `provider` is
 * the registration key, for the topics about identities. What is said to a former address: `{ ...user, email: oldEmail }`.
 */
export function mailNotice(
  ctx: AuthContext,
  recipient: Recipient,
  topic: NoticeTopic,
  locale: Locale = ctx.settings.defaultLocale,
  provider?: string,
): void {
  if (!ctx.postman) return
  const mail = writeMail(ctx, { ...addressed(recipient), topic, locale, ...(provider !== undefined && { provider }) })
  ctx.postman.post(mail, recipient.id, () => mayMail(ctx, recipient))
}

/** A stranger may have signed up with this address, and a name that is a message of its own. */
function addressed({ email, name, emailVerifiedAt }: Recipient) {
  return { to: email, name, saysName: emailVerifiedAt !== null }
}
