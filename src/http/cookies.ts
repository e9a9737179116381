import { randomInt } from 'node:crypto'
import cookieParser from 'cookie-parser'
import type { CookieOptions, Request, Response } from 'express'
import type { Settings } from '../core/config/every-setting'
import { doubledCookie, type SetupWarnings } from '../core/setup-warnings'
import { isAnswerable } from './routes'

const parseCookies = cookieParser()

/**
 * Null: the cookie is missing or empty. If the request has it twice, only the one value that is ours counts. If none or several are ours,
 * the response expires the cookies that this router can set.
 * Parses the header, because the host can parse `req.cookies` in another way. Ignores a value `j:{…}`, which cookie-parser converts to an
 * object.
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

/** The Cookie header that the browser would send after this response. Empty: no cookies. */
export function cookiesAfter(req: Request, res: Response): string {
  const changed = new Map(setCookieLines(res).map((line) => [line.split('=', 1)[0], line]))
  const kept = (req.headers.cookie ?? '').split(';').filter((pair) => pair !== '' && !changed.has(pair.split('=', 1)[0]?.trim()))
  const set = [...changed.values()].filter((line) => !/; *expires=Thu, 01 Jan 1970/i.test(line)).map((line) => line.split(';', 1)[0])
  return [...kept.map((pair) => pair.trim()), ...set].join('; ')
}

export function cookieNames(req: Request): string[] {
  return (req.headers.cookie ?? '').split(';').map((pair) => pair.split('=', 1)[0]?.trim() ?? '')
}

interface SettingSite extends CookieSite {
  readonly settings: CookieSite['settings'] & Pick<Settings, 'cookieDomain' | 'cookieSecure'>
}

export interface CookieScope {
  path: string
  sameSite: 'lax' | 'strict' | 'none'
  /** Other subdomains never get the cookie, whatever `cookieDomain` is. */
  hostOnly?: true
  /** Scripts can read it: without HttpOnly. */
  isReadable?: true
}

/** HttpOnly, except with `isReadable`. Expires doubled cookies first. @param maxAgeSeconds null: the browser deletes it when the browser closes */
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

/** Needs the attributes of `setCookie`, or the browser keeps the cookie. In Express 4, `res.clearCookie` keeps a Max-Age. */
export function clearCookie(site: SettingSite, res: Response, name: string, scope: CookieScope): void {
  dropEarlier(site, res, name)
  res.cookie(name, '', { ...attributes(site.settings, scope), expires: new Date(0) })
}

/** A response sets a cookie only once (RFC 6265 section 4.1.1): a handler overrides a guard. Expiries stay, for other scopes. */
function dropEarlier(site: CookieSite, res: Response, name: string): void {
  if (res.req && isDoubled(res.req, name)) expireEverywhere(site, res.req, res, name, { always: true })
  const set = setCookieLines(res)
  const others = set.filter((line) => !line.startsWith(`${name}=`) || isExpiry(res, name, line))
  if (others.length === set.length) return
  if (others.length > 0) res.setHeader('Set-Cookie', others)
  else res.removeHeader('Set-Cookie')
}

function attributes(settings: SettingSite['settings'], { path, sameSite, hostOnly, isReadable }: CookieScope): CookieOptions {
  const domain = hostOnly || settings.cookieDomain === null ? {} : { domain: settings.cookieDomain }
  return { ...domain, path, sameSite, secure: settings.cookieSecure, httpOnly: !isReadable }
}

/** Guards without a router have no prefix. */
export interface CookieSite {
  readonly settings: Partial<Pick<Settings, 'cookieDomain' | 'publicUrl' | 'tokenDelivery'>>
  readonly prefix?: string
  /** True if a key of ours made this value, also if it has expired. Absent: there is no key to ask. */
  readonly isOwnCookie?: (name: string, value: string) => boolean
  readonly notices?: SetupWarnings
}

/** Another subdomain can add its own cookie (RFC 6265 section 8.6). The Cookie header does not show which one is ours. */
function isDoubled(req: Request, name: string): boolean {
  const header = req.headers.cookie ?? ''
  return header.indexOf(name) !== header.lastIndexOf(name) && valuesOf(header, name).length > 1
}

/** The other values come from another app or from an attacker. */
function ownValues({ isOwnCookie }: CookieSite, req: Request, name: string): string[] {
  return isOwnCookie ? [...new Set(valuesOf(req.headers.cookie ?? '', name))].filter((value) => isOwnCookie(name, value)) : []
}

function valuesOf(header: string, name: string): string[] {
  const pairs = header.split(';').map((pair) => [pair.indexOf('='), pair] as const)
  return pairs.filter(([end, pair]) => end !== -1 && pair.slice(0, end).trim() === name).map(([end, pair]) => pair.slice(end + 1).trim())
}

const end = 'Expires=Thu, 01 Jan 1970 00:00:00 GMT'
const mostPaths = 8
/** With this limit, the lines of one name and the nameless lines stay below `mostLines`. */
const mostNamelessPaths = 5
const mostParentDomains = 2
/** Proxies limit the size of response headers, often to 4 KiB. The next response expires the remaining names. */
const mostLines = 40

const expiries = new WeakMap<Response, Map<string, readonly string[]>>()

/**
 * The scopes are our own paths and all parent paths of the request's path, each with no domain and with `cookieDomain`. The expiries come
 * before all other cookies of the response, so a cookie that the response sets stays.
 * The parent domains count only if two values are ours: then somebody planted a session there. Otherwise a cookie of a parent domain
 * belongs to another app, and its people must stay signed in there.
 * @param options.always ignores the limit of lines; for a response that sets the cookie, because no other cookie of its name may stay
 */
function expireEverywhere(
  site: CookieSite,
  req: Request,
  res: Response,
  name: string,
  { always = false }: { always?: boolean } = {},
): void {
  const done = expiries.get(res) ?? new Map<string, readonly string[]>()
  if (res.headersSent || done.has(name)) return
  const lines = linesOf(site, req, name)
  if (!always && [...done.values()].flat().length + lines.length > mostLines) return
  const nameless = done.has('') || name.startsWith('__Host-') ? [] : namelessLines(site, req, name)
  if (nameless.length > 0) done.set('', nameless)
  expiries.set(res, done.set(name, lines))
  res.setHeader('Set-Cookie', [...nameless, ...lines, ...setCookieLines(res)])
  // A shared cache could send this response to other people and log them out.
  res.setHeader('Cache-Control', 'no-store')
}

function isExpiry(res: Response, name: string, line: string): boolean {
  return expiries.get(res)?.get(name)?.includes(line) ?? false
}

export function setCookieLines(res: Response): string[] {
  const set = res.getHeader('Set-Cookie') ?? []
  return Array.isArray(set) ? set : [String(set)]
}

function linesOf(site: CookieSite, req: Request, name: string): string[] {
  // Browsers store a `__Host-` cookie only at Path=/ and without a domain (RFC 6265bis section 4.1.3.2).
  if (name.startsWith('__Host-')) return [`${name}=; Path=/; ${end}; Secure`]
  const secure = name.startsWith('__Secure-') ? '; Secure' : ''
  return everywhere(site, [req, name], mostPaths, (domain, path) => `${name}=;${domain} Path=${path}; ${end}${secure}`)
}

/**
 * `Set-Cookie: =access_token=x` sets a nameless cookie, which the browser sends as `access_token=x` (RFC 6265bis section 5.8.3). An expiry
 * of `access_token` does not delete it. Browsers reject a nameless cookie whose value begins with `__Host-`.
 */
function namelessLines(site: CookieSite, req: Request, name: string): string[] {
  return everywhere(site, [req, name], mostNamelessPaths, (domain, path) => `=none;${domain} Path=${path}; ${end}`)
}

function everywhere(
  site: CookieSite,
  [req, name]: readonly [Request, string],
  most: number,
  line: (domain: string, path: string) => string,
): string[] {
  const { cookieDomain } = site.settings
  const ours = cookieDomain ? [cookieDomain] : []
  const named = ownValues(site, req, name).length > 1 ? parentDomains(site, req) : ours
  const domains = ['', ...named.map((domain) => ` Domain=${domain};`)]
  return pathsOf(site, req, most).flatMap((path) => domains.map((domain) => line(domain, path)))
}

/** The shortest paths come first, because they affect the most pages. The rest is random, so that later responses reach every path. */
function pathsOf({ prefix, settings }: CookieSite, req: Request, most: number): string[] {
  const { plain, slashed } = parentPaths(req)
  const ours = prefix === undefined ? [] : [prefix, ...(settings.tokenDelivery === 'both' ? [`${prefix}/cookie`] : [])]
  const all = [...new Set(['/', ...ours, ...plain, ...slashed])]
  const chosen = all.splice(0, Math.ceil(most / 2))
  while (chosen.length < most && all.length > 0) chosen.push(...all.splice(randomInt(all.length), 1))
  return chosen
}

/** RFC 6265 section 5.1.4, without and with a slash at the end: `Path=/orders` and `Path=/orders/` are two cookies. */
function parentPaths(req: Request): { plain: string[]; slashed: string[] } {
  const path = String(req.originalUrl ?? '').split('?', 1)[0] ?? ''
  const ends = [...path].flatMap((letter, index) => (letter === '/' && index > 0 ? [index] : []))
  return {
    plain: [...ends.map((end) => path.slice(0, end)), path].filter(isCookiePath),
    slashed: ends.map((end) => path.slice(0, end + 1)).filter(isCookiePath),
  }
}

/** Set-Cookie must be able to contain the path. A long path would fill the header. */
function isCookiePath(path: string): boolean {
  return /^\/[\x21-\x3a\x3c-\x7e]{0,254}$/.test(path)
}

/** The two shortest parent domains contain the registrable domain. Browsers ignore a cookie for a public suffix, such as `co.uk`. */
function parentDomains({ settings }: CookieSite, req: Request): string[] {
  const labels = hostOf(settings, req).split('.')
  const parents = labels.map((_, index) => labels.slice(-index - 1).join('.')).slice(1)
  return [...new Set([...(settings.cookieDomain ? [settings.cookieDomain] : []), ...parents])].slice(0, mostParentDomains)
}

/** A proxy can replace the Host by an internal name without a dot. Then the host of `publicUrl` counts. */
function hostOf({ publicUrl = '' }: CookieSite['settings'], req: Request): string {
  const hosts = [req.hostname, publicUrl === '' ? '' : new URL(publicUrl).hostname]
  return hosts.find(isDomain)?.toLowerCase() ?? ''
}

/** False for an IPv4 address, because it has no parent domains. */
function isDomain(host: string | undefined): boolean {
  return host !== undefined && host.length <= 253 && /^(?:[a-z0-9_-]+\.)+[a-z][a-z0-9-]*$/i.test(host)
}
