import cookieParser from 'cookie-parser'
import express, { type Request, type RequestHandler } from 'express'
import session from 'express-session'
import passport, { Passport } from 'passport'
import { describe, expect, test } from 'vitest'
import { type Mounted, setCookieOf, signIn } from './support/app'
import { appPerTest } from './support/app-per-test'

// What a host mounts before the router is the host's: neither side disturbs the other.

const start = appPerTest()

const hostBefore: [string, RequestHandler[]][] = [
  ['nothing', []],
  ['express.json()', [express.json()]],
  ['express.json() with limits of its own', [express.json({ limit: '5mb', strict: false, inflate: true })]],
  ['express.urlencoded()', [express.urlencoded({ extended: true })]],
  ['cookie-parser', [cookieParser()]],
  ['cookie-parser with a secret of the host', [cookieParser('a secret of the host, and not ours')]],
  ['all of them, and a session', [express.json(), express.urlencoded({ extended: true }), cookieParser('host'), hostSession()]],
]

describe.each(hostBefore)('R-013 behind %s', (_name, before) => {
  test('R-013 bodies are read, limited and refused alike', async () => {
    const app = await start({ before })
    const { body } = await signIn(app)
    const refresh = (token: string) => app.browser().post('/auth/refresh').send({ refresh_token: token })

    const refreshed = await refresh(body.refresh_token)
    expect(refreshed.body).toMatchObject({ access_token: expect.any(String), refresh_token: expect.any(String) })
    expect((await refresh('unknown')).body.code).toBe('INVALID_TOKEN')
    expect((await app.browser().post('/auth/refresh').send({})).body).toMatchObject({
      code: 'VALIDATION_ERROR',
      details: { errors: [{ path: 'refresh_token', rule: 'any.required' }] },
    })
    expect((await refresh('x'.repeat(17 * 1024))).body.code).toBe('PAYLOAD_TOO_LARGE')
    expect((await app.browser().post('/auth/logout').type('form').send({ refresh_token: 'x' })).body.code).toBe('UNSUPPORTED_MEDIA_TYPE')
    expect((await app.browser().post('/auth/logout').send({ refresh_token: refreshed.body.refresh_token })).status).toBe(204)
  })

  test('R-013 cookies are read alike', async () => {
    const app = await start({ before, settings: { tokenDelivery: 'cookie' } })
    const browser = app.browser()
    const login = await signIn(app, browser)

    expect(login.body).toMatchObject({ access_token: null, refresh_token: null, mfa_required: false })
    expect((await browser.get('/auth/me')).status).toBe(200)
    const refreshed = await browser.post('/auth/refresh')
    expect(setCookieOf(refreshed, 'refresh_token')?.value).not.toBe(setCookieOf(login, 'refresh_token')?.value)
    expect((await browser.post('/auth/logout')).status).toBe(204)
    expect((await browser.get('/auth/me')).status).toBe(401)
  })
})

test('R-013 a compressed body is refused, not inflated', async () => {
  const { browser } = await start()

  const response = await browser().post('/auth/refresh').set('Content-Type', 'application/json').set('Content-Encoding', 'gzip').send('{}')
  expect(response.body.code).toBe('UNSUPPORTED_MEDIA_TYPE')
})

describe('R-014 a host with a Passport of its own', () => {
  test('R-014 keeps its user, its session and its session manager on the very requests that are ours', async () => {
    const { app, seen, hostPassport } = await startWithPassport()
    const browser = app.browser()
    await browser.post('/host/login')

    expect((await signIn(app, browser)).status).toBe(200)

    expect(seen.map(({ path }) => path)).toEqual(['/auth/oauth/corp/login', '/auth/oauth/corp/callback'])
    for (const { before, after } of seen) {
      expect(before.user).toEqual({ id: 'host-user' })
      expect(after).toEqual(before)
      expect(after.manager).toBe(Reflect.get(hostPassport, '_sm'))
    }
    expect((await browser.get('/host/me')).body).toEqual({ id: 'host-user' })
  })

  test('R-014 nothing of ours is registered on the singleton', async () => {
    const before = Object.keys(Reflect.get(passport, '_strategies') as object)
    await signIn(await start())

    expect(before).toEqual(['session'])
    expect(Object.keys(Reflect.get(passport, '_strategies') as object)).toEqual(before)
  })
})

function hostSession(): RequestHandler {
  return session({ secret: 'a secret of the host', resave: false, saveUninitialized: false })
}

interface PassportState {
  user: unknown
  manager: unknown
  sessionId: string
  login: unknown
}

function stateOf(req: Request): PassportState {
  return { user: req.user, manager: Reflect.get(req, '_sessionManager'), sessionId: req.sessionID, login: req.login }
}

async function startWithPassport() {
  const seen: { path: string; before: PassportState; after: PassportState }[] = []
  const hostPassport = new Passport()
  hostPassport.serializeUser((user, done) => done(null, (user as { id: string }).id)) // what the login below passes
  hostPassport.deserializeUser((id, done) => done(null, { id }))
  const watch: RequestHandler = (req, res, next) => {
    const { path } = req
    const before = stateOf(req)
    if (path.startsWith('/auth')) res.on('finish', () => seen.push({ path, before, after: stateOf(req) }))
    next()
  }
  const app: Mounted = await start({
    before: [hostSession(), hostPassport.initialize(), hostPassport.session(), watch],
    host: (app) => {
      app.post('/host/login', (req, res, next) => req.login({ id: 'host-user' }, (error) => (error ? next(error) : res.sendStatus(204))))
      app.get('/host/me', (req, res) => void res.json(req.user))
    },
  })
  return { app, seen, hostPassport }
}
