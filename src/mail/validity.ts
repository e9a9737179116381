import type { PhraseBook } from '../core/texts/phrase-book'
import type { Locale } from '../http/locale'

export type ValidThing = 'link' | 'code' | 'both'

export interface Validity {
  readonly issuedAt: Date
  readonly expiresAt: Date
  readonly locale: Locale
  readonly thing: ValidThing
}

/** Returns for example `This link is valid for 24 hours, until March 2, 2026 at 12:00 PM (UTC).` */
export function validityOf(texts: PhraseBook, { issuedAt, expiresAt, locale, thing }: Validity): string {
  const minutes = Math.max(1, Math.round((expiresAt.getTime() - issuedAt.getTime()) / 60_000))
  const instant = new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' }).format(expiresAt)
  const sentence = texts.say(locale, `mail.valid.${thing}`, { duration: inWords(minutes, locale), instant })
  return sentence.replace(/[\u00a0\u202f]/g, ' ') // some mail programs show the locale's narrow spaces as boxes
}

/** Returns the duration in the largest unit that divides it: 3 days, 2 hours, 90 minutes. Exception: one day is 24 hours. */
function inWords(minutes: number, locale: Locale): string {
  const [amount, unit] =
    minutes % 1_440 === 0 && minutes > 1_440 ? [minutes / 1_440, 'day'] : minutes % 60 === 0 ? [minutes / 60, 'hour'] : [minutes, 'minute']
  return new Intl.NumberFormat(locale, { style: 'unit', unit: String(unit), unitDisplay: 'long' }).format(Number(amount))
}
