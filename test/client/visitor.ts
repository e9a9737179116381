import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach } from 'vitest'
import { type AuthClient, type AuthClientOptions, createAuthClient } from '../../src/client/client'
import type { Mounted } from '../support/app'
import { type CookieJar, cookieJar } from '../support/cookie-jar'

/** Instead of the app's answer. `lost`: the request does not arrive. `lost answer`: it arrives, and the answer is lost. */
type Fate = Response | 'lost' | 'lost answer' | undefined | Promise<Response | undefined>

/** A browser without a page: a client with cookies of its own, at an address of its own. */
export interface Visitor {
  readonly auth: AuthClient
  readonly origin: string
  readonly jar: CookieJar
  /** Every request that the client sent, such as `POST /auth/login 200`. */
  readonly requests: string[]
  /** Returns the requests since the last call. */
  seen(): string[]
  meet(fate: (route: string) => Fate): void
  /** Another client of the same browser. */
  again(options?: Partial<AuthClientOptions>): AuthClient
}

interface Place {
  jar: CookieJar
  host: string
  requests: string[]
  fate: (route: string) => Fate
}

const places = new Map<string, Place>()
const real = globalThis.fetch

/** Node keeps no cookies, so the `fetch` of these tests does. */
async function fetchWithCookies(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const url = new URL(input instanceof Request ? input.url : String(input))
  const place = places.get(url.port)
  if (!place) return real(input, init)
  const method = (init.method ?? (input instanceof Request ? input.method : 'GET')).toUpperCase()
  const route = `${method} ${url.pathname}`
  const fate = await place.fate(route)
  if (fate instanceof Response) {
    place.requests.push(`${route} ${fate.status}`)
    return fate
  }
  if (fate === 'lost') throw lostAt(place, route)
  const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined))
  const withCookies = init.credentials === 'include' || (input instanceof Request && input.credentials === 'include')
  const asked = { host: place.host, path: url.pathname }
  const cookies = withCookies ? place.jar.header(asked) : undefined
  if (cookies) headers.set('Cookie', cookies)
  const response = await real(input, { ...init, headers })
  if (withCookies) place.jar.take({ 'set-cookie': response.headers.getSetCookie() }, asked)
  if (fate === 'lost answer') throw lostAt(place, route)
  place.requests.push(`${route} ${response.status}`)
  return response
}

function lostAt(place: Place, route: string): TypeError {
  place.requests.push(`${route} lost`)
  return new TypeError('fetch failed')
}

const opened: { close(): void }[] = []

/** To be called once in a file. */
export function visitors() {
  afterEach(() => {
    globalThis.fetch = real
    for (const one of opened.splice(0)) one.close()
    places.clear()
  })
  return async (host: Mounted, { path = '', ...options }: Partial<AuthClientOptions> & { path?: string } = {}): Promise<Visitor> => {
    globalThis.fetch = fetchWithCookies
    const server: Server = createServer(host.app).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    const origin = `http://127.0.0.1:${port}`
    const place: Place = { jar: cookieJar({ now: host.clock.now }), host: 'app.example.test', requests: [], fate: () => undefined }
    places.set(String(port), place)
    const again = (more: Partial<AuthClientOptions> = {}) => {
      const auth = createAuthClient({ baseUrl: `${origin}/auth${path}`, ...options, ...more })
      opened.push({ close: auth.dispose })
      return auth
    }
    opened.push({
      close() {
        server.closeAllConnections()
        server.close()
      },
    })
    return {
      auth: again(),
      origin,
      jar: place.jar,
      requests: place.requests,
      seen: () => place.requests.splice(0),
      meet(fate) {
        place.fate = fate
      },
      again,
    }
  }
}
