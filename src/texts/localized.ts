import { fillIn, type TextValues } from './fill-in'
import { type TextKey, texts } from './texts'

/** One sentence in both built-in languages. An error of the host's may have further languages, by their tags. */
export interface LocalizedText {
  readonly 'en-US': string
  readonly 'pt-BR': string
}

interface Origin {
  readonly key: TextKey
  readonly values: TextValues
}

// A global symbol, as for `AppError`, so that another copy of the package knows it.
const origin = Symbol.for('doorward.text-key.v1')

/** Returns a text of ours that remembers its key, so that a language of the host's can replace it. */
export function localized(key: TextKey, values: TextValues = {}): LocalizedText {
  const text = { 'en-US': fillIn(texts['en-US'][key], values), 'pt-BR': fillIn(texts['pt-BR'][key], values) }
  return Object.freeze(Object.defineProperty(text, origin, { value: { key, values } satisfies Origin }))
}

/** Returns the key and the values of a text of ours; null if the text is the host's own. */
export function originOf(text: LocalizedText): Origin | null {
  return (text as { [origin]?: Origin })[origin] ?? null // as `localized` set it
}
