import type { TemplateMail } from '../core/mailer'
import type { PhraseBook } from '../core/texts/phrase-book'
import type { Locale } from '../http/locale'
import { instantInWords } from './instant'

/** Returns a line with the time and browser of a sign-up. With this line, readers can tell an attacker's sign-up from their own sign-up. */
export function signupLine(texts: PhraseBook, { at, browser }: NonNullable<TemplateMail['signup']>, locale: Locale): string {
  const time = instantInWords(at, locale)
  return browser === null ? texts.say(locale, 'mail.signed_up', { time }) : texts.say(locale, 'mail.signed_up_with', { time, browser })
}
