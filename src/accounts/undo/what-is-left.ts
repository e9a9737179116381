import type { PhraseBook } from '../../core/texts/phrase-book'
import type { Locale } from '../../http/locale'
import type { UndoPlan } from './plan-undo'

/** How a mail lets the owner log in again. Null if the mail offers no way to log in. */
export type MailedWay = 'password' | 'email_login' | null

/**
 * Returns the ways to log in after an undo, with dates, and what the person must know about the second factor, in the reader's language.
 */
export function whatIsLeft(
  { texts }: { readonly texts: PhraseBook },
  { keptIdentities, keptPasskeys, factor: { totpEnabledAt }, factorMailedAt, keepsRecoveryCodes }: UndoPlan,
  byMail: MailedWay,
  locale: Locale,
): readonly string[] {
  const since = (at: Date) => new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: 'UTC' }).format(at)
  return [
    ...(byMail === null ? [] : [texts.say(locale, `mail.left.${byMail}`)]),
    ...keptIdentities.map(({ provider, createdAt }) => texts.say(locale, 'mail.left.identity', { provider, date: since(createdAt) })),
    ...keptPasskeys.map(({ createdAt }) => texts.say(locale, 'mail.left.passkey', { date: since(createdAt) })),
    ...(totpEnabledAt ? [texts.say(locale, 'mail.left.factor', { date: since(totpEnabledAt) })] : []),
    ...(totpEnabledAt && !keepsRecoveryCodes ? [texts.say(locale, 'mail.left.no_recovery_codes')] : []),
    ...(totpEnabledAt && factorMailedAt
      ? [texts.say(locale, 'mail.left.factor_stays', { date: since(totpEnabledAt), mailed: since(factorMailedAt) })]
      : []),
  ]
}
