import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { TooManyRequestsError } from '../../src/core/errors'
import { descriptionOf } from '../../src/http/description'
import type { Route } from '../../src/http/routes'
import { loginAs } from '../../src/testing'
import { type LocalHost, openAs, password, post, signedIn } from '../local/people'
import { enrolled, onMfa } from '../mfa/people'
import { databases } from '../support/databases'
import { fastHasher } from '../support/fast-hasher'
import { mountedRoutes } from '../support/mounted-routes'
import { recordQueries } from '../support/record-queries'

/** What has no limit of the route, and why. A new route has to be added here, or has a limit. */
const withoutBudget: Readonly<Record<string, string>> = {
  'POST /login': 'limits of its own, before the hash',
  'POST /session/login': 'limits of its own, before the hash',
  'POST /signup': 'a limit of its own, before the hash',
  'POST /activation/request': 'limits of their own, before the query',
  'POST /password-reset/request': 'limits of their own, before the query',
  'POST /email-login/request': 'limits of their own, before the query',
  'POST /email-verify/request': 'limits of their own; a junk token costs no query',
  'POST /mfa/verify': 'a junk token costs no query; wrong codes have a limit of their own',
  'POST /session/mfa/verify': 'a junk token costs no query; wrong codes have a limit of their own',
  'POST /mfa/challenge': 'a junk token costs no query; wrong codes have a limit of their own',
  'POST /refresh': 'a junk token costs no query',
  'POST /logout': 'answers past its limit too: below',
  'POST /session/logout': 'answers past its limit too: below',
  'GET /whoami': 'a junk token or cookie costs no query',
  'GET /client-config': 'no query',
  'GET /me': 'a junk token costs no query',
  'GET /oauth/accounts': 'a junk token costs no query',
  'GET /session/me': 'a junk cookie costs no query',
  'GET /session/list': 'a junk cookie costs no query',
  'DELETE /session/:id': 'a junk cookie costs no query',
  'GET /openapi.json': 'no query',
  'GET /.well-known/jwks.json': 'no query',
  'GET /.well-known/openid-configuration': 'no query',
  'GET /.well-known/oauth-authorization-server': 'no query',
}

const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>) => `${method} ${path.replace(/^\/cookie(?=\/)/, '')}`
const hasBudget = ({ before = [] }: Route) => before.some((step) => descriptionOf(step)?.refuses.includes(TooManyRequestsError))

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onMfa(sqlite)

/** Each request may be another client. */
let clients = 0
const newClient = () => ({ 'X-Forwarded-For': `198.51.${++clients >> 8}.${clients & 255}` })

async function open(tokenDelivery: 'bearer' | 'cookie' | 'both' | 'session', settings: object = {}) {
  mountedRoutes.length = 0
  const hashes: string[] = []
  const plain = fastHasher()
  const host = await start({
    settings: { tokenDelivery, backendLinks: true, ...settings },
    options: {
      throttle: { routes: { attempts: 1, windowSeconds: 60 } },
      passwordHasher: {
        ...plain,
        async hash(password) {
          hashes.push('hash')
          return plain.hash(password)
        },
        async verify(hash, password) {
          hashes.push('verify')
          return plain.verify(hash, password)
        },
      },
    },
    providers: { corp: {} },
  })
  host.app.set('trust proxy', 1)
  const [routes = []] = mountedRoutes
  return { host, routes, hashes }
}

describe.each(['bearer', 'cookie', 'both', 'session'] as const)('the limit of each route, in delivery %s', (tokenDelivery) => {
  const cookieName = tokenDelivery === 'session' ? 'auth_session' : 'access_token'
  const presented = (token: string) =>
    tokenDelivery === 'bearer' ? { Authorization: `Bearer ${token}` } : { Cookie: `${cookieName}=${token}` }

  function ask(host: LocalHost, { method, path }: Route, headers: Record<string, string>) {
    const url = `${host.prefix}${path.replace(':provider', 'corp').replace(':id', '00000000-0000-4000-8000-000000000000').replace(':token', 'x')}`
    const request = host.browser()[method.toLowerCase() as 'get' | 'post' | 'patch'](url).set(headers)
    return method === 'GET' ? request : request.send({})
  }

  test('every mounted route has one, or stands in the list above with the reason', async () => {
    const { routes } = await open(tokenDelivery)
    const without = new Set(routes.filter((route) => !hasBudget(route)).map(nameOf))
    expect([...without].filter((name) => !(name in withoutBudget))).toEqual([])
    expect(routes.filter((route) => hasBudget(route) && nameOf(route) in withoutBudget).map(nameOf)).toEqual([])
    expect(routes.filter(hasBudget).length).toBeGreaterThan(20)
  })

  test('comes before everything that costs: past it there is no query, no hash and no call to a provider', async () => {
    const { host, routes, hashes } = await open(tokenDelivery)
    const admin = await enrolled(host, { isAdmin: true })
    for (const route of routes.filter(hasBudget)) {
      const { token } = await openAs(host, admin.userId)
      const headers = { ...presented(token), ...newClient() }
      const first = await ask(host, route, headers)
      expect([route.path, first.status === 429]).toEqual([route.path, false])

      const calls = host.provider.requests.length
      hashes.length = 0
      const queries = recordQueries(host.knex)
      const past = await ask(host, route, headers)
      expect([route.path, past.status, queries.stop(), hashes, host.provider.requests.length - calls]).toEqual([route.path, 429, [], [], 0])
    }
  })
})

describe.each(['cookie', 'both', 'session'] as const)('the limit of each page, in delivery %s', (tokenDelivery) => {
  test('stands before every query, and is refused by a page', async () => {
    const { host, routes } = await open(tokenDelivery, { pagesEnabled: true, emailLogin: 'code' })
    const pages = routes.filter(({ method, path, describes }) => method === 'GET' && !path.includes(':') && describes.isPage === true)
    expect(pages.length).toBeGreaterThan(10)
    const browser = host.browser()
    const sent = { email: (await signedIn(host)).email, password }
    await browser.post('/auth/login').set('Sec-Fetch-Site', 'same-origin').type('form').send(sent)
    for (const { path } of pages) {
      const client = newClient()
      const first = await browser.get(`${host.prefix}${path}`).set(client)
      expect([path, first.status === 429]).toEqual([path, false])
      const queries = recordQueries(host.knex)
      const past = await browser.get(`${host.prefix}${path}`).set(client)
      expect([path, past.status, queries.stop()]).toEqual([path, 429, []])
      expect([path, past.headers['retry-after'], past.text.includes('<h1>Please wait a moment</h1>')]).toEqual([path, '60', true])
    }
  })
})

describe('a logout past its limit', () => {
  const lines = [
    { tokenDelivery: 'bearer', path: '/logout' },
    { tokenDelivery: 'cookie', path: '/logout' },
    { tokenDelivery: 'both', path: '/logout' },
    { tokenDelivery: 'both', path: '/cookie/logout' },
    { tokenDelivery: 'bearer', path: '/session/logout' },
  ] as const

  describe.each(lines)('$path in delivery $tokenDelivery', ({ tokenDelivery, path }) => {
    const isSession = path === '/session/logout'
    const isInCookie = isSession || tokenDelivery === 'cookie' || path.startsWith('/cookie')

    function send(host: LocalHost, token: string, headers: Record<string, string>, body: object = {}) {
      const cookie = { Cookie: `${isSession ? 'auth_session' : 'refresh_token'}=${token}; oauth_state=x` }
      return post(host, path, isInCookie ? body : { refresh_token: token, ...body }, isInCookie ? { ...headers, ...cookie } : headers)
    }

    async function pastLimit(host: LocalHost) {
      const client = newClient()
      expect((await send(host, 'nothing', client)).status).toBe(204)
      return client
    }

    test('clears the cookies, answers 204, and ends the session of a token with a good MAC by one statement', async () => {
      const { host } = await open(tokenDelivery)
      const { userId } = await signedIn(host)
      const [own, other] = [await loginAs(host.auth, { id: userId }), await loginAs(host.auth, { id: userId })]
      const credentials = { email: (await signedIn(host)).email, password: 'a quiet harbour in winter' }
      const login = isSession ? await post(host, '/session/login', credentials) : null
      const token = isSession ? cookieOf(login, 'auth_session') : own.refreshToken
      const client = await pastLimit(host)

      const queries = recordQueries(host.knex)
      const answer = await send(host, token, client, { all_sessions: true })
      const statements = queries.stop()

      expect([answer.status, statements.length, statements[0]?.slice(0, 6)]).toEqual([204, 1, 'update'])
      if (isInCookie) expect(String(answer.headers['set-cookie'])).toMatch(isSession ? /auth_session=;/ : /access_token=;.*refresh_token=;/)
      if (isSession) {
        expect((await host.browser().get(`${host.prefix}/session/me`).set('Cookie', `auth_session=${token}`)).status).toBe(401)
        return
      }
      await expect(host.auth.service.refresh(own.refreshToken)).rejects.toMatchObject({ code: 'INVALID_TOKEN' })
      expect((await host.auth.service.refresh(other.refreshToken)).kind).toBe('session')
    })

    test('asks the database nothing about junk', async () => {
      const { host } = await open(tokenDelivery)
      const client = await pastLimit(host)
      for (const junk of ['x', randomBytes(32).toString('base64url'), randomBytes(84).toString('base64url')]) {
        const queries = recordQueries(host.knex)
        const answer = await send(host, junk, client)
        expect([answer.status, queries.stop()]).toEqual([204, []])
      }
    })
  })
})

function cookieOf(response: { headers: Record<string, unknown> } | null, name: string): string {
  const lines = (response?.headers['set-cookie'] ?? []) as string[] // supertest types every header as any
  return (
    lines
      .find((line) => line.startsWith(`${name}=`))
      ?.split(';')[0]
      ?.slice(name.length + 1) ?? ''
  )
}
