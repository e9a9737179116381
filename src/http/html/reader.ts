import type { Request } from 'express'
import { hasPasswords, type Settings } from '../../core/config/every-setting'
import type { Logger } from '../../core/logger'
import type { Templates } from '../../core/templates'
import { type LocalizedText, type PhraseBook, type TextKey, type TextValues, withoutPassword } from '../../core/texts/phrase-book'
import type { Theme } from '../../core/theme/theme'
import { askedLocale, localeOf, queryParameter } from '../locale'
import { isReturnTo, longestReturnTo } from '../return-to'
import type { SiteContext } from '../same-site'

/** The language of the person who reads the page, with the texts and links in that language. */
export interface Reader {
  /** The language tag. */
  readonly lang: string
  /** Returns the text in that language. If passwords are off, the text does not mention passwords. */
  text(key: TextKey, values?: TextValues): string
  /** Returns the text of an error in that language. */
  read(text: LocalizedText): string
  /** Returns the URL of a built-in page from its path below the prefix. If the request had `?lang=`, the URL also has `?lang=`. */
  href(path: string, query?: Readonly<Record<string, string | null>>): string
  /** Returns the link to the same page in another language. The link is relative, because the page's URL may contain a token. */
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

/**
 * Returns the query parameters that a link to another language keeps. `return_to` is kept only if it is allowed. The other parameters are
 * kept only with one fixed value. So an attacker cannot put another value into the link.
 */
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

/** What a page needs to be shown. */
export interface PageContext extends SiteContext {
  readonly settings: Settings
  readonly prefix: string
  readonly templates: Templates
  readonly texts: PhraseBook
  readonly theme: Theme
  readonly logger: Logger
}
