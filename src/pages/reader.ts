import type { Request } from 'express'
import { hasPasswords } from '../config/has-passwords'
import type { AuthContext } from '../context'
import { askedLocale, localeOf } from '../http/locale'
import { queryParameter } from '../http/query-parameter'
import { isReturnTo, longestReturnTo } from '../http/return-to'
import type { TextValues } from '../texts/fill-in'
import type { LocalizedText } from '../texts/localized'
import { type TextKey, withoutPassword } from '../texts/texts'

/** Who reads a page: what it is written in, and how its links go on in the same language. */
export interface Reader {
  /** The tag of the language. */
  readonly lang: string
  /** The text in that language. Where nobody has a password it speaks of none. */
  text(key: TextKey, values?: TextValues): string
  /** A text that an error carries, in that language. */
  read(text: LocalizedText): string
  /** The address of a page of ours, by its path below the prefix. It keeps `?lang=` where the page was asked for with it. */
  href(path: string, query?: Readonly<Record<string, string | null>>): string
  /** This page in another language: relative to its own address, which may hold a token. */
  here(lang: string): string
}

export function readerOf(ctx: AuthContext, req: Request): Reader {
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

/** What of this page's address goes along: nothing that a stranger can make up. */
function keptParameters(ctx: AuthContext, req: Request): [string, string][] {
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
