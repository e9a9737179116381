import type { Request, RequestHandler } from 'express'

export type Language = 'en-US' | 'pt-BR'

const languages: readonly Language[] = ['en-US', 'pt-BR']
const cookieName = 'demo_language'

/**
 * Whoever chose a language here has chosen it for everything: in front of the library, so that its mails, pages and
 * messages come in it. It goes by `?lang=`, then by Accept-Language.
 */
export const speakAsChosen: RequestHandler = (request, _response, next) => {
  const chosen = chosenBefore(request)
  if (chosen) request.headers['accept-language'] = chosen
  next()
}

/** On the app's own pages `?lang=pt-BR` is a choice: it is where the link in their header leads. */
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
