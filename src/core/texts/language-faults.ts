import { placeholdersOf } from './fill-in'
import { isTextKey, type Languages, texts } from './texts'

/** Returns what is wrong with the host's texts, as a sentence. Returns null for valid texts. */
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

/** Returns true for a language tag that `Intl` accepts, such as `fr` or `pt-BR`. Mails and pages format dates in that language. */
export function isLanguageTag(tag: string): boolean {
  if (!/^[a-z]{2,3}(?:-[a-z\d]{2,8})*$/i.test(tag)) return false
  try {
    return Intl.getCanonicalLocales(tag).length === 1
  } catch {
    return false // RangeError: the parts of the tag are not in the order of RFC 5646
  }
}

/**
 * Returns what is wrong with `defaultLocale`, as a sentence. Returns null for a valid value.
 * @param languages texts that `languageFault` accepts
 */
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

/** Returns the keys of the texts that a language lacks. These texts are shown in English. */
export function missingTexts(tag: string, words: object): string[] {
  const own = tag in texts ? Object.keys(texts['en-US']) : Object.keys(words)
  return Object.keys(texts['en-US']).filter((key) => !own.includes(key))
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
