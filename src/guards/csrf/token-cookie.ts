import type { Request } from 'express'
import { readCookie } from '../../http/cookies'
import type { CookieSite } from '../../http/doubled-cookies'
import type { TokenSigner } from './token-signer'

export const csrfCookieName = 'csrf_token'

/** The default settings of cookies, for middleware without a router. */
export const anySite: CookieSite = { settings: {} }

/** Returns the token of the cookie. Of two cookies, the one that is good for this request counts: a sibling may have planted the other. */
export function readCsrfCookie(site: CookieSite, req: Request, signer: TokenSigner | null): string | null {
  const isOwnCookie = (_name: string, value: string) => signer?.accepts(value, req) ?? false
  return readCookie({ ...site, isOwnCookie }, req, csrfCookieName)
}
