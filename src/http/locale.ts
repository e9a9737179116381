import type { Request } from 'express'
import type { PhraseBook } from '../core/texts/phrase-book'
import { queryParameter } from './query-parameter'

/** The tag of a language: a language of the library, or a language of the option `languages`. */
export type Locale = 'en-US' | 'pt-BR' | (string & {})

/** The part of the context that determines the language of a request. */
export interface Speaking {
  readonly texts: PhraseBook
  readonly settings: { readonly defaultLocale: Locale }
}

/** Returns the language of a request. The query parameter `lang` comes first, then Accept-Language, then the default. */
export function localeOf(ctx: Speaking, req: Request): Locale {
  return askedLocale(ctx, req) ?? preferredLocale(ctx, req) ?? ctx.settings.defaultLocale
}

/** Returns the language of `?lang=`; null if the parameter is missing or names an unknown language. */
export function askedLocale({ texts }: Pick<Speaking, 'texts'>, req: Request): Locale | null {
  const tag = queryParameter(req, 'lang', 35)
  return tag === null ? null : texts.find(tag)
}

/** Returns the languages of the header, the preferred first. A request that is not Express's has no `acceptsLanguages`. */
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
