import { englishAnswers } from './english-answers'
import { englishMails } from './english-mails'
import { englishPages } from './english-pages'
import { portugueseAnswers } from './portuguese-answers'
import { portugueseMails } from './portuguese-mails'
import { portuguesePages } from './portuguese-pages'

const english = { ...englishPages, ...englishMails, ...englishAnswers }

/** The name of a text, such as `login.title`, `mail.activation.subject` or `error.email_taken`. */
export type TextKey = keyof typeof english

/** Every text of pages, mails and errors by language and key. A text is plain; `{name}` in it is replaced by a value. */
export const texts: Readonly<Record<'en-US' | 'pt-BR', Readonly<Record<TextKey, string>>>> = Object.freeze({
  'en-US': Object.freeze(english),
  'pt-BR': Object.freeze({ ...portuguesePages, ...portugueseMails, ...portugueseAnswers }),
})

/** Returns true when there is a text of this name. */
export function isTextKey(name: string): name is TextKey {
  return Object.hasOwn(texts['en-US'], name)
}

/** Returns the text that takes the place of this one where nobody has a password; itself where it speaks of none. */
export function withoutPassword(key: TextKey): TextKey {
  const other = `${key}_without_password`
  return isTextKey(other) ? other : key
}

/** Texts of the host by language tag: a language of its own, or other words in one of ours. What is left out is English. */
export type Languages = Readonly<Record<string, Readonly<Partial<Record<TextKey, string>>>>>
