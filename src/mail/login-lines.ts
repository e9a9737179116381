import type { Locale } from '../http/locale'
import type { TemplateMail } from '../mailer'
import type { PhraseBook } from '../texts/phrase-book'
import { instantInWords } from './instant'

/** Says when, with what and from where somebody signed in, so that the reader can tell an own login from a stranger's. */
export function loginLines(texts: PhraseBook, { at, browser, ip }: NonNullable<TemplateMail['login']>, locale: Locale): string[] {
  return [
    texts.say(locale, 'mail.login.time', { time: instantInWords(at, locale) }),
    ...(browser === null ? [] : [texts.say(locale, 'mail.login.browser', { browser })]),
    ...(ip === null ? [] : [texts.say(locale, 'mail.login.ip', { ip })]),
  ]
}
