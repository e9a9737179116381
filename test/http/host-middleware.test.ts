import { gzipSync } from 'node:zlib'
import cookieParser from 'cookie-parser'
import express, { type RequestHandler } from 'express'
import session from 'express-session'
import passport from 'passport'
import { describe, expect, test } from 'vitest'
import { errorHandler, errors } from '../../src'
import { type MountOptions, setCookieOf, signIn, testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { logTap } from '../support/log-tap'
import { type RawRequest, sendRaw } from '../support/send-raw'

const start = appPerTest()
const json = { 'Content-Type': 'application/json' }

describe('a host that parses bodies before us', () => {
  async function refreshBehind(before: RequestHandler[], asked: Omit<RawRequest, 'path'>, host?: MountOptions['host']) {
    const mounted = await start({ before, ...(host && { host }) })
    const { refresh_token } = (await signIn(mounted)).body as { refresh_token: string }
    const body = typeof asked.body === 'string' ? asked.body.replace('TOKEN', refresh_token) : asked.body
    return sendRaw(mounted.app, { path: '/auth/refresh', ...asked, ...(body !== undefined && { body }) })
  }
  const good = { headers: json, body: '{"refresh_token":"TOKEN"}' }

  test.each([
    ['express.json()', [express.json()]],
    ['express.json() with a larger limit', [express.json({ limit: '5mb' })]],
    ['express.json() for every type', [express.json({ type: '*/*' })]],
    ['express.json() that is not strict', [express.json({ strict: false })]],
    ['express.text()', [express.text()]],
    ['express.raw()', [express.raw()]],
    ['express.urlencoded()', [express.urlencoded({ extended: true })]],
    ['all of them', [express.json(), express.urlencoded({ extended: false }), express.text(), express.raw()]],
  ])('%s: our routes read JSON', async (_what, before) => {
    const answer = await refreshBehind(before, good)

    expect(answer.status, answer.text).toBe(200)
  })

  test.each([
    [
      'a form, parsed by the host',
      [express.urlencoded({ extended: true })],
      { headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: 'refresh_token=TOKEN' },
      415,
    ],
    [
      'text, parsed as JSON by the host',
      [express.json({ type: '*/*' })],
      { headers: { 'Content-Type': 'text/plain' }, body: '{"refresh_token":"TOKEN"}' },
      415,
    ],
    ['JSON, read as text by the host', [express.text({ type: '*/*' })], good, 422],
    ['JSON, read as bytes by the host', [express.raw({ type: '*/*' })], good, 422],
    ['a list, parsed by the host', [express.json()], { headers: json, body: '["TOKEN"]' }, 422],
    ['null, parsed by the host', [express.json({ strict: false })], { headers: json, body: 'null' }, 422],
    [
      'more than 16 KiB, declared',
      [express.json({ limit: '5mb' })],
      { headers: json, body: `{"refresh_token":"TOKEN","x":"${'x'.repeat(20_000)}"}` },
      413,
    ],
    [
      'more than 16 KiB, chunked',
      [express.json({ limit: '5mb' })],
      { headers: json, body: `{"refresh_token":"TOKEN","x":"${'x'.repeat(20_000)}"}`, chunked: true },
      413,
    ],
    [
      '100,000-deep JSON, chunked',
      [express.json({ limit: '5mb' })],
      { headers: json, body: `{"refresh_token":"TOKEN","x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, chunked: true },
      413,
    ],
    [
      'more than 16 KiB, compressed to less',
      [express.json()],
      { headers: { ...json, 'Content-Encoding': 'gzip' }, body: gzipSync(`{"refresh_token":"x","x":"${'x'.repeat(20_000)}"}`) },
      413,
    ],
    [
      '6,000-deep JSON',
      [express.json()],
      { headers: json, body: `{"refresh_token":"TOKEN","x":${'['.repeat(6000)}${']'.repeat(6000)}}` },
      200,
    ],
  ] as [string, RequestHandler[], Omit<RawRequest, 'path'>, number][])('R-140 %s', async (_what, before, asked, status) => {
    const answer = await refreshBehind(before, asked)

    expect(answer.status, answer.text.slice(0, 200)).toBe(status)
    if (status !== 200) expect(Object.keys(answer.body).sort()).toEqual(['code', 'detail', 'details'])
  })

  test('their own routes read their own bodies in the same app', async () => {
    const mounted = await start({
      before: [express.json({ limit: '1mb' }), express.text()],
      host: (app) => app.post('/echo', (req, res) => void res.json({ got: req.body as unknown })),
    })
    const large = { x: 'x'.repeat(100_000) }

    expect((await sendRaw(mounted.app, { path: '/echo', headers: json, body: JSON.stringify(large) })).body).toEqual({ got: large })
    expect((await sendRaw(mounted.app, { path: '/echo', headers: { 'Content-Type': 'text/plain' }, body: 'hi' })).body).toEqual({
      got: 'hi',
    })
  })

  test('a host that parses nothing finds its bodies unread behind our router', async () => {
    const mounted = await start({
      host: (app) => app.use('/auth/own', express.text({ type: '*/*' }), (req, res) => void res.json({ got: req.body as unknown })),
    })

    expect((await sendRaw(mounted.app, { path: '/auth/own', headers: json, body: '{"a":1}' })).body).toEqual({ got: '{"a":1}' })
  })
})

describe('a host with cookie-parser, express-session and its own Passport', () => {
  interface Found {
    user: unknown
    session: unknown
    cookies: unknown
    signedCookies: unknown
    secret: unknown
    manager: unknown
    logIn: unknown
    logOut: unknown
    isAuthenticated: unknown
    passportOf: unknown
  }

  /** What of theirs is on the request. */
  function look(req: Parameters<RequestHandler>[0]): Found {
    const found = req as unknown as Record<string, unknown> // what other middleware added is in nobody's types
    return {
      user: found['user'],
      session: found['session'],
      cookies: found['cookies'],
      signedCookies: found['signedCookies'],
      secret: found['secret'],
      manager: found['_sessionManager'],
      logIn: found['logIn'],
      logOut: found['logOut'],
      isAuthenticated: found['isAuthenticated'],
      passportOf: found['_passport'],
    }
  }

  async function startHost(tokenDelivery: 'bearer' | 'cookie') {
    const seen: { before: Found; after: Found | null; path: string }[] = []
    passport.serializeUser((user, done) => done(null, (user as { name: string }).name))
    passport.deserializeUser((name: string, done) => done(null, { name }))
    const note: RequestHandler = (req, res, next) => {
      const entry: (typeof seen)[number] = { before: look(req), after: null, path: req.path }
      seen.push(entry)
      res.on('finish', () => {
        entry.after = look(req)
      })
      next()
    }
    const mounted = await start({
      settings: { jwtSecret: testSecret, tokenDelivery },
      before: [
        cookieParser('the host’s own cookie secret'),
        session({ secret: 'the host’s own session secret', resave: false, saveUninitialized: false }),
        passport.initialize(),
        passport.session(),
        note,
      ],
      host: (app) => {
        app.post('/host/login', (req, res, next) => {
          res.cookie('plain', 'p').cookie('sealed', 's', { signed: true })
          req.logIn({ name: 'host person' } as Express.User, (error: unknown) => (error ? next(error) : res.json({ ok: true })))
        })
        app.get(
          '/host/me',
          (req, res) => void res.json({ user: req.user, cookies: req.cookies['plain'], signed: req.signedCookies['sealed'] }),
        )
      },
    })
    return { mounted, seen }
  }

  test.each(['bearer', 'cookie'] as const)('keeps all of it through our whole journey, delivery %s', async (tokenDelivery) => {
    const { mounted, seen } = await startHost(tokenDelivery)
    const browser = mounted.browser()
    const theirs = { user: { name: 'host person' }, cookies: 'p', signed: 's' }
    await browser.post('/host/login')
    expect((await browser.get('/host/me')).body).toEqual(theirs)

    const login = await signIn(mounted, browser)
    const bearer = tokenDelivery === 'bearer' ? { Authorization: `Bearer ${login.body.access_token}` } : {}
    const answers = [
      login,
      await browser.get('/auth/me').set(bearer),
      await browser.post('/auth/refresh').send(tokenDelivery === 'bearer' ? { refresh_token: login.body.refresh_token } : {}),
      await browser.get('/auth/oauth/corp/callback?error=access_denied'),
      await browser.post('/auth/logout').send({ refresh_token: 'x' }),
    ]

    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200, 401, 204])
    expect((await browser.get('/host/me')).body).toEqual(theirs)
    const ours = seen.filter((entry) => entry.path.startsWith('/auth'))
    expect(ours).toHaveLength(6)
    for (const { before, after } of ours) {
      expect(before.user).toEqual({ name: 'host person' })
      for (const [name, value] of Object.entries(after ?? {})) expect(value, name).toBe(before[name as keyof Found])
    }
  })

  test('their session cookie and ours travel side by side', async () => {
    const { mounted } = await startHost('cookie')
    const browser = mounted.browser()
    await browser.post('/host/login')

    const login = await signIn(mounted, browser)

    expect(setCookieOf(login, 'access_token')).not.toBeNull()
    expect(setCookieOf(login, 'connect.sid')).toBeNull()
    expect((await browser.get('/host/me')).status).toBe(200)
  })

  test('a cookie that the host’s secret signed, or that JSON hides in, is none of ours', async () => {
    const { mounted } = await startHost('cookie')

    for (const value of ['j:{"a":1}', 's:abc.def', 'j:[]', '%E0%A4%A'])
      expect((await sendRaw(mounted.app, { path: '/auth/refresh', headers: { Cookie: `refresh_token=${value}` } })).status).toBe(401)
  })
})

describe('errorHandler(), for the host’s own routes', () => {
  const failing: [string, unknown, number, string][] = [
    ['an error of ours', new errors.ForbiddenError({ details: { why: 'x' } }), 403, 'FORBIDDEN'],
    ['an Error', new Error('canary'), 500, 'INTERNAL_ERROR'],
    ['an http-error of the client’s making', Object.assign(new Error('canary'), { status: 404, expose: true }), 404, 'NOT_FOUND'],
    ['the status of an answer somebody else gave', Object.assign(new Error('canary'), { status: 401 }), 500, 'INTERNAL_ERROR'],
    ['an Error with a status of ours to answer for', Object.assign(new Error('canary'), { status: 503 }), 500, 'INTERNAL_ERROR'],
    ['a text', 'canary', 500, 'INTERNAL_ERROR'],
    ['a number', 42, 500, 'INTERNAL_ERROR'],
  ]

  async function startHost(before: RequestHandler[] = [], path: string = '/host') {
    const logs = logTap()
    const mounted = await start({
      before,
      host: (app) => {
        app.all(`${path}/:index`, (req, _res, next) => next(failing[Number(req.params['index'])]?.[1]))
        app.use(errorHandler({ logger: logs }))
      },
    })
    return { mounted, logs }
  }

  test.each(failing.map((line, index) => [line[0], index, line[2], line[3]] as const))('R-140 %s', async (_what, index, status, code) => {
    const { mounted, logs } = await startHost()

    const answer = await sendRaw(mounted.app, { method: 'GET', path: `/host/${index}` })

    expect([answer.status, answer.body['code']]).toEqual([status, code])
    expect(answer.body['details']).toEqual(index === 0 ? { why: 'x' } : {})
    expect(answer.headers['cache-control']).toBe('no-store')
    expect(answer.text + logs.text()).not.toContain('canary')
    expect(logs.entries).toHaveLength(status === 500 ? 1 : 0)
  })

  test.each([
    ['malformed JSON', { headers: json, body: '{"password":"canary' }, 422, 'VALIDATION_ERROR'],
    ['too large', { headers: json, body: `{"x":"${'x'.repeat(200_000)}"}` }, 413, 'PAYLOAD_TOO_LARGE'],
    [
      'an unknown charset',
      { headers: { 'Content-Type': 'application/json; charset=x-klingon' }, body: '{}' },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    ['an unknown encoding', { headers: { ...json, 'Content-Encoding': 'x-canary' }, body: '{}' }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
  ])('R-140 what the host’s own parser raises before our router is mapped: %s', async (_what, asked, status, code) => {
    const { mounted, logs } = await startHost([express.json()])

    const answer = await sendRaw(mounted.app, { path: '/auth/refresh', ...asked })

    expect([answer.status, answer.body['code']]).toEqual([status, code])
    expect(Object.keys(answer.body).sort()).toEqual(['code', 'detail', 'details'])
    expect(answer.text + logs.text()).not.toContain('canary')
  })

  test('R-140 bad percent-encoding in a host’s own path is a 422', async () => {
    const { mounted } = await startHost()

    expect((await sendRaw(mounted.app, { method: 'GET', path: '/host/%zz' })).body['code']).toBe('VALIDATION_ERROR')
  })

  test('an answer that has begun is not turned into another one: the connection ends', async () => {
    const mounted = await start({
      host: (app) => {
        app.get('/half', (_req, res, next) => {
          res.write('half an ans')
          next(new Error('canary'))
        })
        app.use(errorHandler({ logger: logTap() }))
        app.use(((_error, _req, res, _next) => void res.destroy()) as express.ErrorRequestHandler)
      },
    })

    await expect(sendRaw(mounted.app, { method: 'GET', path: '/half' })).rejects.toThrow()
  })
})
