import cookieParser from 'cookie-parser'
import type { CookieOptions, Request, Response } from 'express'
import type { Settings } from '../config/settings'

const parseCookies = cookieParser()

/**
 * Read from the header itself, onto a private object: the host's `req.cookies` may be under another parser's rules, and
 * is left as found. cookie-parser turns `j:{…}` into objects: only a string counts. Empty is absent.
 */
export function readCookie(req: Request, name: string): string | null {
  const jar = { headers: { cookie: req.headers.cookie } } as unknown as Request // all that cookie-parser reads
  parseCookies(jar, {} as Response, () => undefined) // it never touches the response
  const value: unknown = jar.cookies?.[name]
  return typeof value === 'string' && value !== '' ? value : null
}

/** How many cookies of that name came: a sibling host can put its own beside ours, and which one is read is up to chance. */
export function countCookies(req: Request, name: string): number {
  const pairs = (req.headers.cookie ?? '').split(';')
  return pairs.filter((pair) => pair.includes('=') && pair.slice(0, pair.indexOf('=')).trim() === name).length
}

type CookieSettings = Pick<Settings, 'cookieDomain' | 'cookieSecure'>

export interface CookieScope {
  path: string
  sameSite: 'lax' | 'strict' | 'none'
  /** Never shared with sibling hosts, whatever `cookieDomain` says. */
  hostOnly?: true
}

/** Every cookie of ours is HttpOnly. */
export function setCookie(
  settings: CookieSettings,
  res: Response,
  name: string,
  value: string,
  scope: CookieScope & { maxAgeSeconds: number },
): void {
  dropEarlier(res, name)
  res.cookie(name, value, { ...attributes(settings, scope), maxAge: scope.maxAgeSeconds * 1000 })
}

/** The same attributes, or the browser keeps the cookie. Not `res.clearCookie`: Express 4 lets a Max-Age through. */
export function clearCookie(settings: CookieSettings, res: Response, name: string, scope: CookieScope): void {
  dropEarlier(res, name)
  res.cookie(name, '', { ...attributes(settings, scope), expires: new Date(0) })
}

/** One answer sets a cookie once (RFC 6265 section 4.1.1): what a guard set before, the handler behind it may take back. */
function dropEarlier(res: Response, name: string): void {
  const set = [res.getHeader('Set-Cookie') ?? []].flat().map(String)
  const others = set.filter((line) => !line.startsWith(`${name}=`))
  if (others.length === set.length) return
  if (others.length > 0) res.setHeader('Set-Cookie', others)
  else res.removeHeader('Set-Cookie')
}

function attributes(settings: CookieSettings, { path, sameSite, hostOnly }: CookieScope): CookieOptions {
  const domain = hostOnly || settings.cookieDomain === null ? {} : { domain: settings.cookieDomain }
  return { ...domain, path, sameSite, secure: settings.cookieSecure, httpOnly: true }
}
