import type { Locale } from '../http/locale'

/** `March 2, 2026 at 12:00 PM UTC`: mails do not know the reader's zone. */
export function instantInWords(at: Date, locale: Locale): string {
  return `${new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' }).format(at)} UTC`
}
