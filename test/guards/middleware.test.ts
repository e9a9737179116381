import { randomBytes } from 'node:crypto'
import express, { type RequestHandler } from 'express'
import { expect, test } from 'vitest'
import { csrfGuard, csrfToken, getAuth, idempotency, rateLimit, requireInternalToken } from '../../src'
import { type Browser, type MountOptions, setCookieOf, signIn } from '../support/app'
import { appPerTest } from '../support/app-per-test'

const start = appPerTest()
const secret = randomBytes(32).toString('base64url')
const token = randomBytes(32).toString('base64url')

/** A host as docs/middleware.md has it; `seen` is the request before and behind everything of ours. */
function host(seen: { before: string[]; behind: string[] }): NonNullable<MountOptions['host']> {
  const look =
    (when: 'before' | 'behind'): RequestHandler =>
    (req, _res, next) => {
      seen[when] = [...Object.getOwnPropertyNames(req), ...Object.getOwnPropertySymbols(req).map(String)].sort()
      next()
    }
  return (app, { guards }) => {
    const api = express.Router()
    api.use(rateLimit({ limit: 1000 }), csrfToken({ secret, secure: false }), csrfGuard({ secret, exclude: ['/api/hooks'] }))
    api.get('/page', (_req, res) => void res.json({ csrf: res.locals['csrfToken'] }))
    api.use(guards.requireAuth(), idempotency({ caller: (req) => getAuth(req).sub }))
    api.post(
      '/orders',
      look('behind'),
      (req, res) => void res.status(201).json({ by: getAuth(req).sub, at: process.hrtime.bigint().toString() }),
    )
    app.post('/api/hooks/internal', requireInternalToken({ token }), (_req, res) => void res.json({}))
    app.use('/api', express.json(), look('before'), api)
  }
}

async function tokenOf(browser: Browser): Promise<string> {
  return (await browser.get('/api/page')).body.csrf as string
}

test('R-121 R-122 D15 D17 they stand one behind another in a host with cookies: a login makes a new token, a repetition one order', async () => {
  const mounted = await start({ settings: { tokenDelivery: 'cookie' }, host: host({ before: [], behind: [] }) })
  const browser = mounted.browser()
  const anonymous = await tokenOf(browser)
  await signIn(mounted, browser)
  const order = (csrf: string, headers: Record<string, string> = {}) =>
    browser
      .post('/api/orders')
      .set({ 'X-CSRF-Token': csrf, 'Idempotency-Key': 'one', ...headers })
      .send({ item: 1 })

  expect((await order(anonymous)).body.code).toBe('CSRF_VALIDATION_FAILED')
  const csrf = await tokenOf(browser)
  expect(csrf).not.toBe(anonymous)
  expect(await tokenOf(browser)).toBe(csrf)
  const [first, second] = [await order(csrf), await order(csrf)]
  expect([first.status, second.body, second.headers['idempotency-replayed']]).toEqual([201, first.body, 'true'])
  for (const headers of [{ Origin: 'https://evil.example' }, { 'Sec-Fetch-Site': 'cross-site' }])
    expect((await order(csrf, headers)).body.code).toBe('CSRF_VALIDATION_FAILED')

  const refreshed = await browser.post('/auth/refresh').send({})
  expect(setCookieOf(refreshed, 'access_token')).not.toBe(null)
  expect((await order(csrf)).body).toEqual(first.body) // the subject's, whichever access token shows it
})

test('X20 a token and a binding that were planted before the login are good for nothing after it', async () => {
  const mounted = await start({ settings: { tokenDelivery: 'cookie' }, host: host({ before: [], behind: [] }) })
  const [victim, attacker] = [mounted.browser(), mounted.browser()]
  const page = await attacker.get('/api/page')
  const binding = String(setCookieOf(page, 'csrf_binding')?.value)
  victim.cookies.take({ 'set-cookie': [`csrf_binding=${binding}; Path=/`] }, { host: 'app.example.test', path: '/' })
  const kept = await victim.get('/api/page')
  expect(setCookieOf(kept, 'csrf_binding')).toBeNull() // planted, and taken for the browser's own
  const login = await signIn(mounted, victim)

  expect(setCookieOf(login, 'csrf_binding')?.value).toBe('')
  const refused = await victim.post('/api/orders').set('X-CSRF-Token', kept.body.csrf).send({})
  expect(refused.body).toMatchObject({ code: 'CSRF_VALIDATION_FAILED', details: { reason: 'signature' } })
  expect(
    (
      await victim
        .post('/api/orders')
        .set('X-CSRF-Token', await tokenOf(victim))
        .send({})
    ).status,
  ).toBe(201)
})

test('R-123 none of them sets a CORS header or writes on the request', async () => {
  const seen = { before: [] as string[], behind: [] as string[] }
  const mounted = await start({ settings: { tokenDelivery: 'cookie' }, host: host(seen) })
  const browser = mounted.browser()
  await signIn(mounted, browser)
  const csrf = await tokenOf(browser)
  const answers = [
    await browser.get('/api/page').set('Origin', 'https://elsewhere.example'),
    await browser.post('/api/orders').set({ 'X-CSRF-Token': csrf, 'Idempotency-Key': 'one' }).send({}),
    await browser.post('/api/orders').set({ 'X-CSRF-Token': csrf, 'Idempotency-Key': 'one' }).send({}),
    await browser.post('/api/orders').set({ Origin: 'https://elsewhere.example', 'X-CSRF-Token': csrf }).send({}),
    await browser.post('/api/hooks/internal').set({ Origin: 'https://elsewhere.example', 'X-Token': token }).send({}),
    await browser.post('/api/hooks/internal').set({ Origin: 'https://elsewhere.example' }).send({}),
  ]

  expect(answers.map(({ status }) => status)).toEqual([200, 201, 201, 403, 200, 401])
  expect(answers.flatMap(({ headers }) => Object.keys(headers)).filter((name) => name.startsWith('access-control'))).toEqual([])
  const express5 = ['route', 'params', 'baseUrl', 'next', 'url', 'originalUrl', '_parsedUrl', 'res'] // the router's own
  expect(seen.behind.filter((name) => !seen.before.includes(name) && !express5.includes(name))).toEqual([])
  expect(seen.before.length).toBeGreaterThan(5)
})
