import type { TemplateMail } from '../core/mailer'
import type { PhraseBook } from '../core/texts/phrase-book'
import type { Locale } from '../http/locale'
import { instantInWords } from './instant'

/**
 * Returns lines with the time, browser and IP address of a login. With these lines, readers can tell an attacker's login from their own
 * login.
 */
export function loginLines(texts: PhraseBook, { at, browser, ip }: NonNullable<TemplateMail['login']>, locale: Locale): string[] {
  return [
    texts.say(locale, 'mail.login.time', { time: instantInWords(at, locale) }),
    ...(browser === null ? [] : [texts.say(locale, 'mail.login.browser', { browser })]),
    ...(ip === null ? [] : [texts.say(locale, 'mail.login.ip', { ip })]),
  ]
}
