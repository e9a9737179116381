import type { Request } from 'express'
import type { LocalizedText } from '../errors'

export type Locale = keyof LocalizedText

const locales: readonly Locale[] = ['en-US', 'pt-BR']

/** What a person without a name from the provider is called until they say otherwise. */
export const placeholderName: LocalizedText = { 'en-US': 'You', 'pt-BR': 'Você' }

/** The `lang` query parameter, then Accept-Language, then the default. */
export function localeOf(req: Request, fallback: Locale): Locale {
  return askedLocale(req) ?? preferredLocale(req) ?? fallback
}

/** What `?lang=` names; null when it names nothing we speak. */
export function askedLocale(req: Request): Locale | null {
  const lang = req.query['lang']
  return typeof lang === 'string' ? matchLocale(lang) : null
}

/** `pt`, `pt-br` and `pt-BR` all mean pt-BR. */
export function matchLocale(tag: string): Locale | null {
  const wanted = tag.toLowerCase()
  return locales.find((locale) => locale.toLowerCase() === wanted || locale.slice(0, 2) === wanted) ?? null
}

function preferredLocale(req: Request): Locale | null {
  for (const tag of req.acceptsLanguages()) {
    if (tag === '*') return null // any language: the default is as good
    const locale = matchLocale(tag) ?? matchLocale(tag.split('-', 1)[0] ?? '')
    if (locale) return locale
  }
  return null
}
