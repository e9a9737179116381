import type { IncomingHttpHeaders, RequestListener } from 'node:http'
import supertest from 'supertest'
import { askedOf } from './cookie-check'
import { type CookieJar, cookieJar } from './cookie-jar'

export type Browser = ReturnType<typeof supertest.agent> & {
  /** What it keeps, and what a sibling host plants there. */
  cookies: CookieJar
}

/** What supertest's agent makes of a request, and its way to deal with cookies. */
interface Sent {
  method: string
  url: string
  header: Record<string, string>
  cookies: string
}

/**
 * A browser that visits the app at `host`, which its requests do not name: a proxy that ends TLS stands between. It obeys cookie-jar.ts.
 * @param app the app, or the address of one
 */
export function browserOf(
  app: RequestListener | string,
  { host = 'app.example.test', now }: { host?: string; now?: () => Date } = {},
): Browser {
  const jar = cookieJar(now ? { now } : {})
  const asked = ({ method, url, header }: Sent) => {
    const { pathname } = new URL(url)
    const headers = Object.fromEntries(Object.entries(header).map(([name, value]) => [name.toLowerCase(), value])) as IncomingHttpHeaders
    return askedOf(host, { method, path: pathname, headers })
  }
  return Object.assign(supertest.agent(app), {
    cookies: jar,
    // Read when the request leaves: only then does it have its headers.
    _attachCookies(request: Sent) {
      Object.defineProperty(request, 'cookies', { configurable: true, get: () => jar.header(asked(request)) ?? '' })
    },
    _saveCookies({ headers, request }: { headers: Record<string, unknown>; request: Sent }) {
      jar.take(headers, asked(request))
    },
  })
}
