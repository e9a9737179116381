import { createRequire } from 'node:module'
import express, { type Express } from 'express'
import { describe, expect, test } from 'vitest'
import { getAuth } from '../../src'
import { type Mounted, setCookieOf, signIn, testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { browserOf } from '../support/browser'
import { checkCookies } from '../support/cookie-check'
import { sendRaw } from '../support/send-raw'

const start = appPerTest()
const require = createRequire(import.meta.url)
/** The major that our own router is not made by: `require` does not see the alias that EXPRESS=4 sets for imports. */
const otherExpress = require(process.env['EXPRESS'] === '4' ? 'express' : 'express4') as typeof express

/** The warnings about how the router is mounted. */
function mountWarnings({ logs }: Mounted): string[] {
  const messages = logs.entries.filter((entry) => entry.level === 'warn').map((entry) => entry.message)
  return messages.filter((message) => /mounted at another path|trust proxy/.test(message))
}

/** The router of `mounted` in another app of the host. */
function inApp(mounted: Mounted, put: (app: Express) => void, app: Express = express()): Mounted {
  app.use(checkCookies())
  put(app)
  return { ...mounted, app, browser: () => browserOf(app, { host: 'app.example.test', now: mounted.clock.now }) }
}

async function expectWholeJourney(mounted: Mounted) {
  const browser = mounted.browser()
  const login = await signIn(mounted, browser)
  expect(login.status, login.text).toBe(200)
  const bearer = { Authorization: `Bearer ${login.body.access_token}` }
  expect((await browser.get(`${mounted.prefix}/me`).set(bearer)).status).toBe(200)
  expect((await browser.get(`${mounted.prefix}/oauth/accounts`).set(bearer)).body).toHaveLength(1)
  const refreshed = await browser.post(`${mounted.prefix}/refresh`).send({ refresh_token: login.body.refresh_token })
  expect(refreshed.status, refreshed.text).toBe(200)
  expect((await browser.post(`${mounted.prefix}/logout`).send({ refresh_token: refreshed.body.refresh_token })).status).toBe(204)
  return login
}

describe.each(['/auth', '/api/v1/auth', '/a'])('mounted at its prefix %s', (prefix) => {
  test('the whole journey works, cookies and redirect URIs follow the prefix, and nothing is warned about', async () => {
    const mounted = await start({ prefix })

    await expectWholeJourney(mounted)

    expect(mounted.provider.authorizations[0]?.params.get('redirect_uri')).toBe(`https://app.example.test${prefix}/oauth/corp/callback`)
    const login = await mounted.browser().get(`${prefix}/oauth/corp/login`)
    expect(setCookieOf(login, 'oauth_state')?.attributes).toContain(`Path=${prefix};`)
    expect(mountWarnings(mounted)).toEqual([])
  })
})

test('in a nested router and in a sub-app the journey works too, without a warning', async () => {
  const mounted = await start({ prefix: '/api/v1/auth' })
  const nested = inApp(mounted, (app) => {
    const api = express.Router()
    api.use('/auth', mounted.auth)
    app.use('/api/v1', api)
  })
  const subApp = inApp(mounted, (app) => {
    const api = express()
    api.use('/auth', mounted.auth)
    app.use('/api/v1', api)
  })

  await expectWholeJourney(nested)
  await expectWholeJourney(subApp)

  expect(mountWarnings(mounted)).toEqual([])
})

test('behind a proxy that strips the first part of the public path nothing is warned about', async () => {
  const mounted = await start({ prefix: '/api/auth' })
  const stripped = inApp(mounted, (app) => app.use('/auth', mounted.auth))

  expect((await stripped.browser().get('/auth/me')).status).toBe(401)

  expect(mountWarnings(mounted)).toEqual([])
})

test.each([
  ['/login', '/auth'],
  ['/', '/auth'],
  ['/api/auth', '/auth'],
  ['/xauth', '/auth'],
  ['/auth', '/auth2'],
])('mounted at %s with prefix %s: one warning that names the prefix, however many requests', async (path, prefix) => {
  const mounted = await start({ prefix })
  const elsewhere = inApp(mounted, (app) => app.use(path, mounted.auth))
  for (const _ of [1, 2, 3]) await elsewhere.browser().get(`${path === '/' ? '' : path}/me`)

  expect(mountWarnings(mounted)).toEqual([expect.stringContaining('mounted at another path')])
  expect(mounted.logs.entries.find((entry) => entry.message.includes('mounted at another path'))?.fields).toEqual({
    prefix,
    mountedAt: path,
  })
})

test('letter case in a request’s path, which Express ignores at the mount, is no reason to warn', async () => {
  const mounted = await start()
  await sendRaw(mounted.app, { method: 'GET', path: '/AUTH/me' })

  expect(mountWarnings(mounted)).toEqual([])
})

test.each([
  ['true', true, 1],
  ["'loopback'", 'loopback', 0],
  ['1', 1, 0],
  ['not set', undefined, 0],
])("'trust proxy' %s", async (_name, value, warnings) => {
  const mounted = await start({
    before: [(_req, _res, next) => next()],
    host: (app) => value !== undefined && app.set('trust proxy', value),
  })
  for (const _ of [1, 2, 3]) await mounted.browser().get('/auth/me')

  expect(mountWarnings(mounted)).toHaveLength(warnings)
  if (warnings > 0) expect(mountWarnings(mounted)[0]).toContain("'trust proxy' is true")
})

test('a router of one Express major works inside an app of the other', async () => {
  const mounted = await start()
  const foreign = inApp(
    mounted,
    (app) => {
      app.use('/auth', mounted.auth)
      app.get('/api', mounted.auth.guards.requireAuth(), (req, res) => void res.json({ sub: getAuth(req).sub }))
      app.use('/auth', (_req, res) => void res.status(418).send('host'))
    },
    otherExpress(),
  )

  const login = await expectWholeJourney(foreign)

  const api = await foreign.browser().get('/api').set('Authorization', `Bearer ${login.body.access_token}`)
  expect(api.body).toEqual({ sub: login.body.user_id })
  for (const [method, path, status, code] of [
    ['GET', '/auth/oauth/%zz/login', 422, 'VALIDATION_ERROR'],
    ['PUT', '/auth/refresh', 405, 'METHOD_NOT_ALLOWED'],
    ['GET', '/auth/oauth/nobody/login', 404, 'OAUTH_PROVIDER_NOT_CONFIGURED'],
    ['GET', '/auth/nothing', 418, undefined],
    ['GET', '/api', 401, 'UNAUTHORIZED'],
  ] as const) {
    const answer = await sendRaw(foreign.app, { method, path })
    expect([answer.status, answer.body['code']], path).toEqual([status, code])
  }
  const malformed = await sendRaw(foreign.app, { path: '/auth/refresh', headers: { 'Content-Type': 'application/json' }, body: '{"x' })
  expect([malformed.status, malformed.body['code']]).toEqual([422, 'VALIDATION_ERROR'])
  expect(mountWarnings(mounted)).toEqual([])
})

test('in delivery cookie a router of one major sets and clears cookies inside an app of the other', async () => {
  const mounted = await start({ settings: { jwtSecret: testSecret, tokenDelivery: 'cookie' } })
  const foreign = inApp(mounted, (app) => app.use('/auth', mounted.auth), otherExpress())
  const browser = foreign.browser()

  const login = await signIn(foreign, browser)
  const refreshed = await browser.post('/auth/refresh')
  const logout = await browser.post('/auth/logout')

  expect([login.status, refreshed.status, logout.status]).toEqual([200, 200, 204])
  expect(setCookieOf(login, 'refresh_token')?.attributes).toMatch(/^Max-Age=604800; Path=\/auth; Expires=[^;]+; HttpOnly; SameSite=Lax$/)
  expect(setCookieOf(logout, 'refresh_token')?.attributes).toBe('Path=/auth; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; SameSite=Lax')
})
