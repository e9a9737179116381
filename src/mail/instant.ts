import type { Locale } from '../http/locale'

/** Returns for example `March 2, 2026 at 12:00 PM UTC`. The time is in UTC, because the reader's time zone is unknown. */
export function instantInWords(at: Date, locale: Locale): string {
  return `${new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' }).format(at)} UTC`
}
