import { fillIn, type TextValues } from './fill-in'
import { type TextKey, texts } from './texts'

/** One sentence in the languages that we speak. An error of the host's may bring further ones, by their tags. */
export interface LocalizedText {
  readonly 'en-US': string
  readonly 'pt-BR': string
}

interface Origin {
  readonly key: TextKey
  readonly values: TextValues
}

// By a name that another copy of the package knows, as `AppError` has one.
const origin = Symbol.for('doorward.text-key.v1')

/** Returns a text of ours that knows its key, so that a language of the host's can find it. */
export function localized(key: TextKey, values: TextValues = {}): LocalizedText {
  const text = { 'en-US': fillIn(texts['en-US'][key], values), 'pt-BR': fillIn(texts['pt-BR'][key], values) }
  return Object.freeze(Object.defineProperty(text, origin, { value: { key, values } satisfies Origin }))
}

/** Returns the key and the values of a text of ours; null: the text is the host's own. */
export function originOf(text: LocalizedText): Origin | null {
  return (text as { [origin]?: Origin })[origin] ?? null // as `localized` left it
}
