import type { Request } from 'express'
import { readCookie } from '../../http/cookies'
import type { CookieSite } from '../../http/doubled-cookies'

export const csrfCookieName = 'csrf_token'

/** The default settings of cookies, for middleware without a router. */
export const anySite: CookieSite = { settings: {} }

export function readCsrfCookie(site: CookieSite, req: Request): string | null {
  return readCookie(site, req, csrfCookieName)
}
