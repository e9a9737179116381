import { englishAnswers, englishMails } from './english-mails'
import { englishPages } from './english-pages'
import { portugueseAnswers, portugueseMails } from './portuguese-mails'
import { portuguesePages } from './portuguese-pages'

export interface PhraseBook {
  /** The built-in languages come first. */
  readonly languages: readonly string[]
  /** If the language lacks the text, returns the English text. */
  say(language: string, key: TextKey, values?: TextValues): string
  /** If a text of the host lacks the language, returns the English text. */
  read(language: string, text: LocalizedText): string
  /** `pt`, `pt-br` and `pt-BR` give `pt-BR`. `fr-CA` gives `fr` if the host has only `fr`. Null: no language fits. */
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

export function directionOf(language: string): 'ltr' | 'rtl' {
  return /^(?:ar|fa|he|ur)\b/i.test(language) ? 'rtl' : 'ltr'
}

/** One sentence in both built-in languages. An error of the host can have more languages, with the language tags as keys. */
export interface LocalizedText {
  readonly 'en-US': string
  readonly 'pt-BR': string
}

interface Origin {
  readonly key: TextKey
  readonly values: TextValues
}

// Global, as for `AppError`, so that another copy of the package recognizes it.
const origin = Symbol.for('doorward.text-key.v1')

/** By its key, the host's text can replace the built-in text. */
export function localized(key: TextKey, values: TextValues = {}): LocalizedText {
  const text = { 'en-US': fillIn(texts['en-US'][key], values), 'pt-BR': fillIn(texts['pt-BR'][key], values) }
  return Object.freeze(Object.defineProperty(text, origin, { value: { key, values } satisfies Origin }))
}

/** Null: a text of the host. */
function originOf(text: LocalizedText): Origin | null {
  return (text as { [origin]?: Origin })[origin] ?? null // as `localized` set it
}

export type TextValues = Readonly<Record<string, string | number>>

function fillIn(text: string, values: TextValues): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => (Object.hasOwn(values, name) ? String(values[name]) : whole))
}

export function placeholdersOf(text: string): string[] {
  return [...text.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
}

/** Returns a sentence. Null: the texts are valid. */
export function languageFault(languages: unknown): string | null {
  if (!isRecord(languages))
    return "Option languages must be an object of texts by language tag, for example { fr: { 'login.title': 'Connexion' } }."
  for (const [tag, words] of Object.entries(languages)) {
    if (!isLanguageTag(tag))
      return `Option languages: ${JSON.stringify(tag.slice(0, 64))} is not a language tag; use one such as 'fr' or 'pt-BR'.`
    if (!isRecord(words)) return `Option languages.${tag} must be an object of texts by key; the keys are those of the exported \`texts\`.`
    const fault = Object.entries(words).map(([key, text]) => textFault(tag, key, text))
    const [first] = fault.filter((found) => found !== null)
    if (first !== undefined) return first
  }
  return null
}

/** Mails and pages format dates in that language, so `Intl` must accept the tag. */
export function isLanguageTag(tag: string): boolean {
  if (!/^[a-z]{2,3}(?:-[a-z\d]{2,8})*$/i.test(tag)) return false
  try {
    return Intl.getCanonicalLocales(tag).length === 1
  } catch {
    return false // RangeError: the parts of the tag are not in the order of RFC 5646
  }
}

/** Returns a sentence. Null: valid. @param languages texts that `languageFault` accepts */
export function defaultLocaleFault(defaultLocale: string, languages: Languages = {}): string | null {
  const known = [...new Set([...Object.keys(texts), ...Object.keys(languages)])]
  if (known.includes(defaultLocale)) return null
  return `defaultLocale (AUTH_DEFAULT_LOCALE) is ${JSON.stringify(defaultLocale)}, which has no texts; give them in option languages, or use one of ${known.join(', ')}.`
}

function textFault(tag: string, key: string, text: unknown): string | null {
  const english = texts['en-US']
  const name = `Option languages.${tag}[${JSON.stringify(key.slice(0, 64))}]`
  if (!isTextKey(key)) return `${name} is not a text key; the keys are those of the exported \`texts\`.`
  if (typeof text !== 'string' || text.trim() === '') return `${name} must be a text that is not empty.`
  const known = placeholdersOf(english[key])
  const unknown = placeholdersOf(text).find((placeholder) => !known.includes(placeholder))
  if (unknown === undefined) return null
  const allowed = known.length === 0 ? 'it has no placeholders' : `it may hold ${known.map((placeholder) => `{${placeholder}}`).join(', ')}`
  return `${name} holds {${unknown}}, which is never filled in; ${allowed}.`
}

export function missingTexts(tag: string, words: object): string[] {
  const own = tag in texts ? Object.keys(texts['en-US']) : Object.keys(words)
  return Object.keys(texts['en-US']).filter((key) => !own.includes(key))
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const english = { ...englishPages, ...englishMails, ...englishAnswers }

/** The name of a text, such as `login.title`, `mail.activation.subject` or `error.email_taken`. */
export type TextKey = keyof typeof english

/** Texts of pages, mails and errors, by language and key, without HTML. A value replaces a placeholder such as `{name}`. */
export const texts: Readonly<Record<'en-US' | 'pt-BR', Readonly<Record<TextKey, string>>>> = Object.freeze({
  'en-US': Object.freeze(english),
  'pt-BR': Object.freeze({ ...portuguesePages, ...portugueseMails, ...portugueseAnswers }),
})

export function isTextKey(name: string): name is TextKey {
  return Object.hasOwn(texts['en-US'], name)
}

/** If there is no separate text for the case without passwords, returns `key` itself. */
export function withoutPassword(key: TextKey): TextKey {
  const other = `${key}_without_password`
  return isTextKey(other) ? other : key
}

/** The host's texts by language tag, new or replacing built-in ones. Missing texts: English or, for a built-in language, its own. */
export type Languages = Readonly<Record<string, Readonly<Partial<Record<TextKey, string>>>>>
