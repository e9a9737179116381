import type { AuthContext } from '../context'
import { TooManyRequestsError } from '../errors'
import type { Locale } from '../http/locale'
import { takeUnit } from '../limits/take-unit'
import { composeMail, type MailTopic } from '../mail/compose'
import type { UserRecord } from '../store/auth-store'
import type { LinkToken } from './email-link'

/**
 * Whether the account's address may get one more mail, whatever it is about; taken before the link is made, so that no
 * link dies for one that is never sent. Without a mailer there is nothing to count.
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

/** Goes to the stored address, after the commit and off the response path. Take the unit with `mayMail` before. */
export function mailLink(
  ctx: AuthContext,
  user: UserRecord,
  topic: MailTopic,
  { url, expiresAt }: Pick<LinkToken, 'url' | 'expiresAt'>,
  locale: Locale,
): void {
  ctx.postman?.post(composeMail({ ...addressed(user), topic, locale, link: { url, expiresAt } }), user.id)
}

/** Tells the owner of what happened to the account; never makes the operation fail, which is done already. */
export function mailNotice(ctx: AuthContext, user: UserRecord, topic: MailTopic, locale: Locale = ctx.settings.defaultLocale): void {
  if (!ctx.postman) return
  const mail = composeMail({ ...addressed(user), topic, locale })
  const isStarted = ctx.background.runIfRoom('notice', async () => {
    if (await mayMail(ctx, user)) ctx.postman?.post(mail, user.id)
  })
  if (!isStarted) ctx.events.emit('mail.failed', { kind: mail.kind, userId: user.id, reason: 'too_many' })
}

/** A stranger may have signed up with this address, and a name that is a message of its own. */
function addressed({ email, name, emailVerifiedAt }: UserRecord) {
  return { to: email, name, saysName: emailVerifiedAt !== null }
}
