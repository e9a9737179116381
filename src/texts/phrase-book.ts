import { fillIn, type TextValues } from './fill-in'
import { type LocalizedText, originOf } from './localized'
import { type Languages, type TextKey, texts } from './texts'

/** All texts there are: ours, and those of the host. */
export interface PhraseBook {
  /** The tags of the languages, ours first. */
  readonly languages: readonly string[]
  /** The text in this language, in English where it has none. */
  say(language: string, key: TextKey, values?: TextValues): string
  /** The same for a text that an error carries. One of the host's own is said in English where it lacks the language. */
  read(language: string, text: LocalizedText): string
  /** The language that a tag means: `pt`, `pt-br` and `pt-BR` are `pt-BR`, `fr-CA` is `fr` where there is no other. Null: none. */
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
      const spoken: Partial<Record<string, string>> = { ...text } // an error of the host's may speak further languages
      return spoken[language] ?? text['en-US']
    },
  }
}

function merged(added: Languages) {
  const names = new Set([...Object.keys(texts), ...Object.keys(added)])
  return Object.fromEntries([...names].map((name) => [name, { ...texts[name as keyof typeof texts], ...added[name] }]))
}

/** How a language is written. */
export function directionOf(language: string): 'ltr' | 'rtl' {
  return /^(?:ar|fa|he|ur)\b/i.test(language) ? 'rtl' : 'ltr'
}
