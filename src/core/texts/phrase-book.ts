import { fillIn, type TextValues } from './fill-in'
import { type LocalizedText, originOf } from './localized'
import { type Languages, type TextKey, texts } from './texts'

/** All texts: the built-in texts and the host's texts. */
export interface PhraseBook {
  /** The tags of the languages. The built-in languages come first. */
  readonly languages: readonly string[]
  /** Returns the text in this language. If the language lacks the text, returns the English text. */
  say(language: string, key: TextKey, values?: TextValues): string
  /** Returns the text of an error in this language. If a text of the host lacks the language, returns the English text. */
  read(language: string, text: LocalizedText): string
  /**
   * Returns the language that fits a tag best; null if no language fits. `pt`, `pt-br` and `pt-BR` give `pt-BR`. If the host has texts for
   * `fr` and not for `fr-CA`, `fr-CA` gives `fr`.
   */
  find(tag: string): string | null
}

export function createPhraseBook(added: Languages = {}): PhraseBook {
  const books: Readonly<Record<string, Readonly<Partial<Record<TextKey, string>>>>> = merged(added)
  const languages = Object.keys(books)
  const say = (language: string, key: TextKey, values: TextValues = {}) => fillIn(books[language]?.[key] ?? texts['en-US'][key], values)
  const find = (tag: string) => {
    const wanted = tag.toLowerCase()
    const [start] = wanted.split('-', 1)
    return (
      languages.find((language) => language.toLowerCase() === wanted) ??
      languages.find((language) => language.toLowerCase() === start) ??
      languages.find((language) => language.toLowerCase().split('-', 1)[0] === start) ??
      null
    )
  }
  return {
    languages,
    find,
    say,
    read(language, text) {
      const ours = originOf(text)
      if (ours) return say(language, ours.key, ours.values)
      const spoken: Partial<Record<string, string>> = { ...text } // an error of the host can have more languages
      return spoken[language] ?? text['en-US']
    },
  }
}

function merged(added: Languages) {
  const names = new Set([...Object.keys(texts), ...Object.keys(added)])
  return Object.fromEntries([...names].map((name) => [name, { ...texts[name as keyof typeof texts], ...added[name] }]))
}

/** Returns the writing direction of a language. */
export function directionOf(language: string): 'ltr' | 'rtl' {
  return /^(?:ar|fa|he|ur)\b/i.test(language) ? 'rtl' : 'ltr'
}
