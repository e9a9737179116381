import type { Request } from 'express'
import type { PhraseBook } from '../texts/phrase-book'
import { queryParameter } from './query-parameter'

/** The tag of a language: one of ours, or one of the option `languages`. */
export type Locale = 'en-US' | 'pt-BR' | (string & {})

/** The part of the context that the language of a request depends on. */
export interface Speaking {
  readonly texts: PhraseBook
  readonly settings: { readonly defaultLocale: Locale }
}

/** Returns the language of a request: of the query parameter `lang`, else of Accept-Language, else the default. */
export function localeOf(ctx: Speaking, req: Request): Locale {
  return askedLocale(ctx, req) ?? preferredLocale(ctx, req) ?? ctx.settings.defaultLocale
}

/** Returns the language of `?lang=`. Null: there is none, or it is unknown. */
export function askedLocale({ texts }: Pick<Speaking, 'texts'>, req: Request): Locale | null {
  const tag = queryParameter(req, 'lang', 35)
  return tag === null ? null : texts.find(tag)
}

function preferredLocale({ texts }: Speaking, req: Request): Locale | null {
  for (const tag of req.acceptsLanguages()) {
    if (tag === '*') return null // any language, so the default is used
    const found = texts.find(tag)
    if (found !== null) return found
  }
  return null
}
