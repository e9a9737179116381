import type { Request, RequestHandler } from 'express'

export type Language = 'en-US' | 'pt-BR'

const languages: readonly Language[] = ['en-US', 'pt-BR']
const cookieName = 'demo_language'

/**
 * Applies the language that the person chose on the app's pages to the library too. The library uses `?lang=`, and then the Accept-Language
 * header. This middleware runs before the library and sets that header, so that the library's mails, pages and messages are in the chosen
 * language.
 */
export const speakAsChosen: RequestHandler = (request, _response, next) => {
  const chosen = chosenBefore(request)
  if (chosen) request.headers['accept-language'] = chosen
  next()
}

/** Stores the language of `?lang=` in a cookie. The language links in the header of the app's pages have this parameter. */
export const rememberChoice: RequestHandler = (request, response, next) => {
  const asked = askedFor(request)
  if (asked) response.cookie(cookieName, asked, { httpOnly: true, sameSite: 'lax', maxAge: 365 * 24 * 3_600_000 })
  next()
}

export function languageOf(request: Request): Language {
  const preferred = request.acceptsLanguages('en-US', 'en', 'pt-BR', 'pt') || 'en'
  return askedFor(request) ?? (preferred.startsWith('pt') ? 'pt-BR' : 'en-US')
}

function askedFor(request: Request): Language | null {
  return languages.find((language) => language === request.query.lang) ?? null
}

function chosenBefore(request: Request): Language | null {
  const pairs = (request.headers.cookie ?? '').split('; ')
  return languages.find((language) => pairs.includes(`${cookieName}=${language}`)) ?? null
}
