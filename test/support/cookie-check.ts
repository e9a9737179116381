import type { IncomingHttpHeaders } from 'node:http'
import type { RequestHandler } from 'express'
import { getPublicSuffix } from 'tough-cookie'
import { type Asked, cookieJar, type Sender } from './cookie-jar'

/** What requests of the running test carried, one sentence each. fail-on-cookies.ts fails the test by it. */
export const impossibleCookies: string[] = []

/** What answers have set, of all apps since the file began: apps of one host share the cookies of a browser. */
export const cookiesSet = new Map<string, { line: string; asked: Asked }[]>()

const anyway = 'x-cookies-sent-anyway'
const noSameSite = 'x-browser-without-samesite'

/** For `.set()`: another site attacks a browser that knows no SameSite, and heeds every other rule. */
export const oldBrowser = { [noSameSite]: 'yes' }

/** For `.set()`: this request carries cookies of ours that no browser sends there, and why. */
export function sentAnyway(why: string): Record<string, string> {
  return { [anyway]: why }
}

/**
 * In front of an app: a cookie that an answer set comes back only where a browser sends it. Else the request is 500, and its test fails.
 * Cookies that a test makes up pass. When a cookie ends is not looked at: a thief does not heed that.
 * @param publicHost where browsers find the app
 */
export function checkCookies(publicHost = 'app.example.test'): RequestHandler {
  return (req, res, next) => {
    const asked = askedOf(publicHost, { method: req.method, path: req.originalUrl, headers: req.headers })
    const isStated = req.headers[anyway] !== undefined
    for (const name of [anyway, noSameSite]) delete req.headers[name]
    const impossible = isStated
      ? []
      : pairsOf(req.headers.cookie).filter((pair) => cookiesSet.get(pair)?.every((one) => !isSent(one, asked)))
    if (impossible.length > 0) {
      const told = impossible.map((pair) => sentence(pair, req.method, asked, cookiesSet.get(pair)?.[0]?.line ?? ''))
      impossibleCookies.push(...told)
      res.status(500).type('text').send(told.join('\n'))
      return
    }
    const end = res.end.bind(res)
    const record = (...rest: unknown[]) => {
      for (const line of [res.getHeader('Set-Cookie') ?? []].flat()) note(String(line), asked)
      return (end as (...args: unknown[]) => typeof res)(...rest)
    }
    res.end = record as typeof res.end // its overloads are passed on as they come
    next()
  }
}

function note(line: string, asked: Asked): void {
  const [pair = ''] = line.split(';', 1)
  if (pair.endsWith('=')) return
  for (const sent of new Set([pair, decoded(pair)])) cookiesSet.set(sent, [...(cookiesSet.get(sent) ?? []), { line, asked }])
}

function pairsOf(header = ''): string[] {
  return header.split(';').map((pair) => pair.trim())
}

function decoded(pair: string): string {
  try {
    return decodeURIComponent(pair)
  } catch {
    return pair
  }
}

function isSent({ line, asked: setBy }: { line: string; asked: Asked }, asked: Asked): boolean {
  const jar = cookieJar({ now: () => new Date(0) })
  jar.take({ 'set-cookie': [line] }, setBy)
  return jar.header(asked) !== undefined
}

function sentence(pair: string, method: string, { host, path, by }: Asked, line: string): string {
  const [name = ''] = pair.split('=', 1)
  const [, ...scope] = line.split(/; */)
  const from = by === undefined || by === 'page' ? '' : ` of another site’s ${by}`
  return `No browser sends the cookie ${name} (${scope.join('; ') || 'no attributes'}) with this request${from}: ${method} ${host}${path.replace(/\?.*/s, '')}. See test/support/cookie-check.ts.`
}

/** What a browser would know of a request that reached the app through its proxy. */
export function askedOf(
  publicHost: string,
  { method, path, headers }: { method: string; path: string; headers: IncomingHttpHeaders },
): Asked {
  const named = hostnameOf(`http://${headers.host ?? ''}`)
  const host = named !== null && siteOf(named) === siteOf(publicHost) ? named : publicHost // else a proxy, or a lie, changed the header
  return { host, path: path.startsWith('/') ? path : '/', by: senderOf(host, method, headers) }
}

function senderOf(host: string, method: string, headers: IncomingHttpHeaders): Sender {
  if (headers[noSameSite] !== undefined) return 'page'
  const from = headers.origin === undefined ? null : hostnameOf(headers.origin)
  const isForeign = from !== null && !isLoopback(from) && siteOf(from) !== siteOf(host)
  if (!isForeign && headers['sec-fetch-site'] !== 'cross-site') return 'page'
  const isRead = method === 'GET' || method === 'HEAD'
  const isForm = /^application\/x-www-form-urlencoded/.test(headers['content-type'] ?? '')
  const mode = headers['sec-fetch-mode'] ?? ((isRead && !isForeign) || isForm ? 'navigate' : 'cors')
  if (mode !== 'navigate' || (headers['sec-fetch-dest'] ?? 'document') !== 'document') return 'script'
  return isRead ? 'link' : 'form'
}

function hostnameOf(url: string): string | null {
  return URL.canParse(url) ? new URL(url).hostname || null : null
}

function isLoopback(hostname: string): boolean {
  return /^(localhost|127\.[\d.]+|\[::1\])$/.test(hostname)
}

function siteOf(hostname: string): string {
  return getPublicSuffix(hostname, { allowSpecialUseDomain: true, ignoreError: true }) ?? hostname
}
