import { fillIn, type TextValues } from './fill-in'
import { type TextKey, texts } from './texts'

/** One sentence in both built-in languages. An error of the host can have more languages, with the language tags as keys. */
export interface LocalizedText {
  readonly 'en-US': string
  readonly 'pt-BR': string
}

interface Origin {
  readonly key: TextKey
  readonly values: TextValues
}

// The symbol is global, as for `AppError`, so that another copy of the package recognizes it.
const origin = Symbol.for('doorward.text-key.v1')

/** Returns a built-in text with its key. With the key, the host's text can replace the built-in text. */
export function localized(key: TextKey, values: TextValues = {}): LocalizedText {
  const text = { 'en-US': fillIn(texts['en-US'][key], values), 'pt-BR': fillIn(texts['pt-BR'][key], values) }
  return Object.freeze(Object.defineProperty(text, origin, { value: { key, values } satisfies Origin }))
}

/** Returns the key and the values of a built-in text. Returns null for a text of the host. */
export function originOf(text: LocalizedText): Origin | null {
  return (text as { [origin]?: Origin })[origin] ?? null // as `localized` set it
}
