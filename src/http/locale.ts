import type { Request } from 'express'
import type { PhraseBook } from '../texts/phrase-book'
import { queryParameter } from './query-parameter'

/** The tag of a language: one of ours, or one of the option `languages`. */
export type Locale = 'en-US' | 'pt-BR' | (string & {})

/** What a request's language is chosen from. */
export interface Speaking {
  readonly texts: PhraseBook
  readonly settings: { readonly defaultLocale: Locale }
}

/** The `lang` query parameter, then Accept-Language, then the default. */
export function localeOf(ctx: Speaking, req: Request): Locale {
  return askedLocale(ctx, req) ?? preferredLocale(ctx, req) ?? ctx.settings.defaultLocale
}

/** What `?lang=` names; null when it names nothing we speak. */
export function askedLocale({ texts }: Pick<Speaking, 'texts'>, req: Request): Locale | null {
  const tag = queryParameter(req, 'lang', 35)
  return tag === null ? null : texts.find(tag)
}

function preferredLocale({ texts }: Speaking, req: Request): Locale | null {
  for (const tag of req.acceptsLanguages()) {
    if (tag === '*') return null // any language: the default is as good
    const found = texts.find(tag)
    if (found !== null) return found
  }
  return null
}
