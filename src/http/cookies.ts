import cookieParser from 'cookie-parser'
import type { CookieOptions, Request, Response } from 'express'
import type { Settings } from '../config/every-setting'
import { type CookieSite, expireEverywhere, isDoubled, isExpiry, setCookieLines } from './doubled-cookies'

const parseCookies = cookieParser()

/**
 * Returns the value of a cookie. Null: there is none, it is empty, or its name came twice; then the answer expires that name.
 *
 * Read from the header itself, onto a private object: the host's `req.cookies` may be under another parser's rules, and is left as found.
 * cookie-parser turns `j:{…}` into objects: only a string counts.
 */
export function readCookie(site: CookieSite, req: Request, name: string): string | null {
  if (isDoubled(req, name)) {
    if (req.res) expireEverywhere(site, req, req.res, name)
    return null
  }
  const jar = { headers: { cookie: req.headers.cookie } } as unknown as Request // all that cookie-parser reads
  parseCookies(jar, {} as Response, () => undefined) // it never touches the response
  const value: unknown = jar.cookies?.[name]
  return typeof value === 'string' && value !== '' ? value : null
}

/** The Cookie header that the browser would send next, now that this answer has set and cleared some. Empty: none. */
export function cookiesAfter(req: Request, res: Response): string {
  const changed = new Map(setCookieLines(res).map((line) => [line.split('=', 1)[0], line]))
  const kept = (req.headers.cookie ?? '').split(';').filter((pair) => pair !== '' && !changed.has(pair.split('=', 1)[0]?.trim()))
  const set = [...changed.values()].filter((line) => !/; *expires=Thu, 01 Jan 1970/i.test(line)).map((line) => line.split(';', 1)[0])
  return [...kept.map((pair) => pair.trim()), ...set].join('; ')
}

/** The names in a request's Cookie header, as often as they come. */
export function cookieNames(req: Request): string[] {
  return (req.headers.cookie ?? '').split(';').map((pair) => pair.split('=', 1)[0]?.trim() ?? '')
}

export interface SettingSite extends CookieSite {
  readonly settings: CookieSite['settings'] & Pick<Settings, 'cookieDomain' | 'cookieSecure'>
}

export interface CookieScope {
  path: string
  sameSite: 'lax' | 'strict' | 'none'
  /** Never shared with sibling hosts, whatever `cookieDomain` says. */
  hostOnly?: true
}

/**
 * Every cookie of ours is HttpOnly. Where the request brought two of the name, both are expired first.
 * @param maxAgeSeconds null: it ends with the browser
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

/** The same attributes, or the browser keeps the cookie. Not `res.clearCookie`: Express 4 lets a Max-Age through. */
export function clearCookie(site: SettingSite, res: Response, name: string, scope: CookieScope): void {
  dropEarlier(site, res, name)
  res.cookie(name, '', { ...attributes(site.settings, scope), expires: new Date(0) })
}

/**
 * One answer sets a cookie once (RFC 6265 section 4.1.1): what a guard set before, the handler behind it may take back. The expiries of a
 * doubled name stay, because they are about other cookies.
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
