import express, { type ErrorRequestHandler, type RequestHandler } from 'express'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { createGuards, csrfGuard, csrfToken, errorHandler, idempotency, rateLimit, requireInternalToken } from '../../src'
import { baseUrl, testSecret } from '../support/app'
import { oldBrowser } from '../support/cookie-check'
import { useDatabase, wrongApp } from './wrong-app'

useDatabase()

/** What a route whose handler is the maker itself tells the app's error handler. */
async function thrownBy(maker: unknown): Promise<string> {
  const app = express()
  app.get('/x', maker as RequestHandler, (_req, res) => void res.send('reached'))
  const tell: ErrorRequestHandler = (error, _req, res, _next) => void res.status(500).send(String(error))
  app.use(tell)
  const { status, text } = await supertest(app).get('/x').timeout(2_000)
  expect(status).toBe(500)
  return text
}

describe('a guard without its parentheses', () => {
  test('of a router throws a sentence, whichever it is', async () => {
    const { auth } = await wrongApp()
    const guards = Object.entries(auth.guards).filter(([name]) => !['getUser', 'verify', 'verifyToken'].includes(name))

    expect(guards.length).toBeGreaterThanOrEqual(7)
    for (const [name, maker] of guards)
      expect(await thrownBy(maker)).toBe(
        `ConfigurationError: guards.${name} is in a route without its parentheses. Write guards.${name}(), which returns the handler. See docs/troubleshooting.md#guard-without-parentheses`,
      )
  })

  test('guards.verify and guards.verifyToken in a route throw a sentence too, because they are no handlers', async () => {
    const { auth } = await wrongApp()
    for (const name of ['verify', 'verifyToken'] as const)
      expect(await thrownBy(auth.guards[name])).toMatch(
        `ConfigurationError: guards.${name} is passed as a handler, but it returns a promise`,
      )
    // A listener of an upgrade gets the first bytes, and a middleware of Socket.IO the function that goes on.
    const verify = auth.guards.verify as (...given: unknown[]) => unknown
    for (const given of [
      [{ headers: {} }, {}, Buffer.alloc(0)],
      [{ headers: {} }, () => undefined],
    ])
      expect(() => verify(...given)).toThrow(/^guards.verify is passed as a handler/)
  })

  test('so do those of createGuards() and each middleware', async () => {
    const guards = createGuards({ settings: { jwtSecret: testSecret } })
    for (const maker of [guards.requireAuth, csrfGuard, csrfToken, rateLimit, idempotency, requireInternalToken, errorHandler])
      expect(await thrownBy(maker)).toMatch(/^ConfigurationError: [\w.]+ is in a route without its parentheses/)
  })
})

describe('auth.guards.csrf()', () => {
  const secret = 'Zq8vR2nX5tLw0cJ7hYb3KdMf9sPg6aUe4iTo'
  const other = 'https://admin.example.test'

  async function guarded() {
    const mounted = await wrongApp({
      settings: { trustedOrigins: [other] },
      host(app, auth) {
        app.use(express.urlencoded({ extended: false }), express.json(), csrfToken({ secret }), auth.guards.csrf({ secret }))
        app.get('/form', (_req, res) => void res.json({ token: res.locals['csrfToken'] }))
        app.post('/order', (_req, res) => void res.json({ ordered: true }))
      },
    })
    const form = await supertest(mounted.app).get('/form')
    const token = String(form.body.token)
    const order = (headers: Record<string, string> = {}) =>
      supertest(mounted.app)
        .post('/order')
        .set({ Cookie: `csrf_token=${token}`, ...headers, ...oldBrowser })
    return { ...mounted, token, order }
  }

  test('takes the token from the header, or from the field _csrf of a form', async () => {
    const { token, order } = await guarded()

    expect((await order({ 'X-CSRF-Token': token })).status).toBe(200)
    expect((await order().type('form').send({ _csrf: token })).status).toBe(200)
    expect((await order().send({ _csrf: token })).body.details).toEqual({ reason: 'no_token' })
    expect(
      (
        await order()
          .type('form')
          .send({ _csrf: [token, token] })
      ).body.details,
    ).toEqual({ reason: 'no_token' })
    expect((await order({ 'X-CSRF-Token': 'another' }).type('form').send({ _csrf: token })).body.details).toEqual({ reason: 'mismatch' })
  })

  test('knows the public origin and the trusted ones, and tells the log of any other once', async () => {
    const { token, order, logs } = await guarded()
    const from = (origin: string) => order({ 'X-CSRF-Token': token, Origin: origin })

    for (const origin of [baseUrl, other]) expect((await from(origin)).status).toBe(200)
    for (let round = 0; round < 2; round++) expect((await from('https://evil.example')).body.details).toEqual({ reason: 'origin' })
    expect(logs.entries.filter(({ message }) => message.includes('https://evil.example was refused'))).toHaveLength(1)
  })

  test('says in one word why it refuses', async () => {
    const { token, order } = await guarded()
    const reason = async (headers: Record<string, string>) => (await order(headers)).body.details.reason

    expect(await reason({ 'X-CSRF-Token': token, 'Sec-Fetch-Site': 'cross-site' })).toBe('site')
    expect(await reason({ Cookie: '', 'X-CSRF-Token': token })).toBe('no_cookie')
    expect(await reason({})).toBe('no_token')
    expect(await reason({ 'X-CSRF-Token': `${token}x` })).toBe('mismatch')
    expect(await reason({ Cookie: 'csrf_token=made.up.here', 'X-CSRF-Token': 'made.up.here' })).toBe('signature')
  })

  test('refuses an option that does not exist', async () => {
    const { auth } = await wrongApp()
    expect(() => auth.guards.csrf({ secrets: secret } as object)).toThrow(/guards\.csrf: unknown option "secrets"; .* secret\./)
  })
})
