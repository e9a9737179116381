import type { Locale } from '../http/locale'
import type { TemplateMail } from '../mailer'
import type { PhraseBook } from '../texts/phrase-book'
import { instantInWords } from './instant'

/** Returns a line with the time and browser of a sign-up. With this line, readers can tell an attacker's sign-up from their own sign-up. */
export function signupLine(texts: PhraseBook, { at, browser }: NonNullable<TemplateMail['signup']>, locale: Locale): string {
  const time = instantInWords(at, locale)
  return browser === null ? texts.say(locale, 'mail.signed_up', { time }) : texts.say(locale, 'mail.signed_up_with', { time, browser })
}
