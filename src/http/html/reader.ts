import type { Request } from 'express'
import { hasPasswords, type Settings } from '../../core/config/every-setting'
import type { Logger } from '../../core/logger'
import type { Templates } from '../../core/templates'
import { type LocalizedText, type PhraseBook, type TextKey, type TextValues, withoutPassword } from '../../core/texts/phrase-book'
import type { Theme } from '../../core/theme/theme'
import { askedLocale, localeOf, queryParameter } from '../locale'
import { isReturnTo, longestReturnTo } from '../return-to'
import type { SiteContext } from '../same-site'

export interface Reader {
  readonly lang: string
  /** If passwords are off, the text does not mention passwords. */
  text(key: TextKey, values?: TextValues): string
  read(text: LocalizedText): string
  /** `path` is below the prefix. Keeps the `?lang=` of the request. */
  href(path: string, query?: Readonly<Record<string, string | null>>): string
  /** Relative, because the page's URL may contain a token. */
  here(lang: string): string
}

export function readerOf(ctx: PageContext, req: Request): Reader {
  const asked = askedLocale(ctx, req)
  const lang = localeOf(ctx, req)
  const takesPasswords = hasPasswords(ctx.settings)
  return {
    lang,
    text: (key, values) => ctx.texts.say(lang, takesPasswords ? key : withoutPassword(key), values),
    read: (text) => ctx.texts.read(lang, text),
    href: (path, query = {}) => `${ctx.prefix}${path}${queryOf({ ...query, lang: asked })}`,
    here: (other) => `?${new URLSearchParams([...keptParameters(ctx, req), ['lang', other]])}`,
  }
}

/** Keeps `return_to` only if it is allowed, and others only with one fixed value, so that an attacker cannot choose one. */
function keptParameters(ctx: PageContext, req: Request): [string, string][] {
  const back = queryParameter(req, 'return_to', longestReturnTo)
  const kept = [
    ['switch', '1'],
    ['by', 'email'],
  ] as const
  return [
    ...(back !== null && isReturnTo(ctx.settings, back) ? [['return_to', back] as [string, string]] : []),
    ...kept
      .filter(([name, value]) => queryParameter(req, name, value.length) === value)
      .map(([name, value]): [string, string] => [name, value]),
  ]
}

function queryOf(values: Readonly<Record<string, string | null>>): string {
  const given = Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== null)
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}

export interface PageContext extends SiteContext {
  readonly settings: Settings
  readonly prefix: string
  readonly templates: Templates
  readonly texts: PhraseBook
  readonly theme: Theme
  readonly logger: Logger
}
