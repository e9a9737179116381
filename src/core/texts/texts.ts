import { englishAnswers } from './english-answers'
import { englishMails } from './english-mails'
import { englishPages } from './english-pages'
import { portugueseAnswers } from './portuguese-answers'
import { portugueseMails } from './portuguese-mails'
import { portuguesePages } from './portuguese-pages'

const english = { ...englishPages, ...englishMails, ...englishAnswers }

/** The name of a text, such as `login.title`, `mail.activation.subject` or `error.email_taken`. */
export type TextKey = keyof typeof english

/**
 * Every text of pages, mails and errors, by language and key. The texts contain no HTML. A placeholder such as `{name}` is replaced by a
 * value.
 */
export const texts: Readonly<Record<'en-US' | 'pt-BR', Readonly<Record<TextKey, string>>>> = Object.freeze({
  'en-US': Object.freeze(english),
  'pt-BR': Object.freeze({ ...portuguesePages, ...portugueseMails, ...portugueseAnswers }),
})

/** Returns true if there is a text with this name. */
export function isTextKey(name: string): name is TextKey {
  return Object.hasOwn(texts['en-US'], name)
}

/** Returns the key of the text to use if passwords are off. If there is no separate text for that case, returns `key` itself. */
export function withoutPassword(key: TextKey): TextKey {
  const other = `${key}_without_password`
  return isTextKey(other) ? other : key
}

/**
 * The host's texts by language tag, for another language or to replace texts of a built-in language. Missing texts are shown in English or,
 * for a built-in language, as the built-in text.
 */
export type Languages = Readonly<Record<string, Readonly<Partial<Record<TextKey, string>>>>>
