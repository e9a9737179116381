import type { Locale } from '../http/locale'
import type { TemplateMail } from '../mailer'
import type { PhraseBook } from '../texts/phrase-book'
import { instantInWords } from './instant'

/** Says which signup an activation belongs to, so that its reader can tell an own one from a stranger's. */
export function signupLine(texts: PhraseBook, { at, browser }: NonNullable<TemplateMail['signup']>, locale: Locale): string {
  const time = instantInWords(at, locale)
  return browser === null ? texts.say(locale, 'mail.signed_up', { time }) : texts.say(locale, 'mail.signed_up_with', { time, browser })
}
