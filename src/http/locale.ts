import type { Request } from 'express'
import { ConfigurationError } from '../core/errors'
import { createPhraseBook, defaultLocaleFault, type Languages, languageFault, type PhraseBook } from '../core/texts/phrase-book'

/** The tag of a language: a language of the library, or a language of the option `languages`. */
export type Locale = 'en-US' | 'pt-BR' | (string & {})

export interface Speaking {
  readonly texts: PhraseBook
  readonly settings: { readonly defaultLocale: Locale }
}

/** The query parameter `lang` comes first, then Accept-Language, then the default. */
export function localeOf(ctx: Speaking, req: Request): Locale {
  return askedLocale(ctx, req) ?? preferredLocale(ctx, req) ?? ctx.settings.defaultLocale
}

/** Null: missing or unknown. */
export function askedLocale({ texts }: Pick<Speaking, 'texts'>, req: Request): Locale | null {
  const tag = queryParameter(req, 'lang', 35)
  return tag === null ? null : texts.find(tag)
}

/** The preferred first. A request that is not Express's has no `acceptsLanguages`. */
function acceptedLanguages(req: Request): string[] {
  if (typeof req.acceptsLanguages === 'function') return req.acceptsLanguages()
  const weights = (req.headers['accept-language'] ?? '').split(',').map((entry) => {
    const [tag = '', weight] = entry.split(/;\s*q=/)
    return { tag: tag.trim(), weight: Number(weight ?? 1) }
  })
  const wanted = weights.filter(({ tag, weight }) => tag !== '' && weight > 0)
  return wanted.sort((one, other) => other.weight - one.weight).map(({ tag }) => tag)
}

function preferredLocale({ texts }: Speaking, req: Request): Locale | null {
  for (const tag of acceptedLanguages(req)) {
    if (tag === '*') return null // `*` means any language
    const found = texts.find(tag)
    if (found !== null) return found
  }
  return null
}

const browsers: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\bEdgA?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Chrome|CriOS)\//, 'Chrome'],
  [/\bVersion\/[\d.]+ .*Safari\//, 'Safari'],
]

const systems: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\b(?:iPhone|iPad|iPod)\b/, 'iOS'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
]

/** The library's own names. Null: unknown. */
export function readBrowser(userAgent: string): { browser: string | null; system: string | null } {
  const nameIn = (list: typeof browsers) => list.find(([pattern]) => pattern.test(userAgent))?.[1] ?? null
  return { browser: nameIn(browsers), system: nameIn(systems) }
}

/** `Firefox, Windows`. A mail never contains the User-Agent header itself, because a client can send any text in it. */
export function browserName(userAgent: string): string | null {
  const { browser, system } = readBrowser(userAgent)
  const found = [browser, system].filter((name) => name !== null)
  return found.length > 0 ? found.join(', ') : null
}

/** @throws ConfigurationError for an invalid language or text, and for a default locale without texts */
export function checkedLanguages(languages: Languages | undefined, defaultLocale = 'en-US'): PhraseBook {
  const fault = (languages === undefined ? null : languageFault(languages)) ?? defaultLocaleFault(defaultLocale, languages)
  if (fault !== null) throw new ConfigurationError(fault)
  return createPhraseBook(languages)
}

/** Null: missing, repeated, empty or too long. Compares names exactly: `code[]` and `code[x]` are not `code`. */
export function queryParameter(req: Request, name: string, maxLength: number): string | null {
  return onlyQueryValue(queryValues(req, name), maxLength)
}

/** Null: missing, repeated, empty or too long. */
export function onlyQueryValue([value = '', ...others]: readonly string[], maxLength: number): string | null {
  return value !== '' && value.length <= maxLength && others.length === 0 ? value : null
}

/** From the URL, because `req.query` depends on the host's parser and on the version of Express. */
export function queryValues(req: Request, name: string): string[] {
  const start = req.url.indexOf('?')
  return start === -1 ? [] : new URLSearchParams(req.url.slice(start)).getAll(name)
}
