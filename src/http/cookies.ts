import cookieParser from 'cookie-parser'
import type { CookieOptions, Request, Response } from 'express'
import type { Settings } from '../core/config/every-setting'
import { doubledCookie } from '../core/setup-warnings/request-notices'
import { isAnswerable } from './answerable'
import { type CookieSite, expireEverywhere, isDoubled, isExpiry, ownValues, setCookieLines } from './doubled-cookies'

const parseCookies = cookieParser()

/**
 * Returns the value of a cookie. Returns null if the cookie is missing or empty. If the request has the cookie twice, returns the one value
 * that is ours. If no value or several values are ours, returns null, and the response expires the cookies that this router can set.
 *
 * The host can parse `req.cookies` in another way. So the function parses the header itself, and does not change `req.cookies`.
 * cookie-parser converts a value `j:{…}` to an object, and the function ignores such a value.
 */
export function readCookie(site: CookieSite, req: Request, name: string): string | null {
  if (!req.headers.cookie?.includes(name)) return null // most requests have only some of our cookies
  if (isDoubled(req, name)) {
    site.notices?.tell(doubledCookie(name))
    const [own = null, ...others] = ownValues(site, req, name)
    if (own !== null && others.length === 0) return own
    if (isAnswerable(req.res)) expireEverywhere(site, req, req.res, name)
    return null
  }
  const jar = { headers: { cookie: req.headers.cookie } } as unknown as Request // cookie-parser reads only the header
  parseCookies(jar, {} as Response, () => undefined) // cookie-parser does not use the response
  const value: unknown = jar.cookies?.[name]
  return typeof value === 'string' && value !== '' ? value : null
}

/** Returns the Cookie header that the browser would send after this response. The result is empty if there are no cookies. */
export function cookiesAfter(req: Request, res: Response): string {
  const changed = new Map(setCookieLines(res).map((line) => [line.split('=', 1)[0], line]))
  const kept = (req.headers.cookie ?? '').split(';').filter((pair) => pair !== '' && !changed.has(pair.split('=', 1)[0]?.trim()))
  const set = [...changed.values()].filter((line) => !/; *expires=Thu, 01 Jan 1970/i.test(line)).map((line) => line.split(';', 1)[0])
  return [...kept.map((pair) => pair.trim()), ...set].join('; ')
}

/** Returns all names in a request's Cookie header, including repeated names. */
export function cookieNames(req: Request): string[] {
  return (req.headers.cookie ?? '').split(';').map((pair) => pair.split('=', 1)[0]?.trim() ?? '')
}

export interface SettingSite extends CookieSite {
  readonly settings: CookieSite['settings'] & Pick<Settings, 'cookieDomain' | 'cookieSecure'>
}

export interface CookieScope {
  path: string
  sameSite: 'lax' | 'strict' | 'none'
  /** If true, other subdomains never get the cookie, whatever `cookieDomain` is. */
  hostOnly?: true
}

/**
 * Sets a cookie, always HttpOnly. If the request has two cookies with this name, the function first expires both cookies.
 * @param maxAgeSeconds null: the browser deletes the cookie when the browser closes
 */
export function setCookie(
  site: SettingSite,
  res: Response,
  name: string,
  value: string,
  { maxAgeSeconds, ...scope }: CookieScope & { maxAgeSeconds: number | null },
): void {
  dropEarlier(site, res, name)
  res.cookie(name, value, { ...attributes(site.settings, scope), ...(maxAgeSeconds !== null && { maxAge: maxAgeSeconds * 1000 }) })
}

/**
 * Clears a cookie. The attributes must be the same as in `setCookie`. Otherwise the browser keeps the cookie. The function does not use
 * `res.clearCookie`, because in Express 4 `res.clearCookie` keeps a Max-Age.
 */
export function clearCookie(site: SettingSite, res: Response, name: string, scope: CookieScope): void {
  dropEarlier(site, res, name)
  res.cookie(name, '', { ...attributes(site.settings, scope), expires: new Date(0) })
}

/**
 * Removes an earlier Set-Cookie with this name, because a response must set a cookie only once (RFC 6265 section 4.1.1). So a handler can
 * override the cookie of a guard. The expiries from `expireEverywhere` stay, because each of them deletes a cookie of another scope.
 */
function dropEarlier(site: CookieSite, res: Response, name: string): void {
  if (res.req && isDoubled(res.req, name)) expireEverywhere(site, res.req, res, name, { always: true })
  const set = setCookieLines(res)
  const others = set.filter((line) => !line.startsWith(`${name}=`) || isExpiry(res, name, line))
  if (others.length === set.length) return
  if (others.length > 0) res.setHeader('Set-Cookie', others)
  else res.removeHeader('Set-Cookie')
}

function attributes(settings: SettingSite['settings'], { path, sameSite, hostOnly }: CookieScope): CookieOptions {
  const domain = hostOnly || settings.cookieDomain === null ? {} : { domain: settings.cookieDomain }
  return { ...domain, path, sameSite, secure: settings.cookieSecure, httpOnly: true }
}
