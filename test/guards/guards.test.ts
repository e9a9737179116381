import type { Express, RequestHandler } from 'express'
import express from 'express'
import { describe, expect, test, vi } from 'vitest'
import { type AuthStore, ConfigurationError, createAuthRouter, createGuards, createKnexStore, findAuth, getAuth, getUser } from '../../src'
import { type Mounted, setCookieOf, signIn, testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { oldBrowser } from '../support/cookie-check'
import { logTap } from '../support/log-tap'
import { linkTemplates } from '../support/mailbox'
import { type RawRequest, sendRaw } from '../support/send-raw'

const start = appPerTest()
const settings = { jwtSecret: testSecret }

/** What each guarded route says of its caller. */
function guardedRoutes(app: Express, { guards }: Mounted['auth']): void {
  const who: RequestHandler = (req, res) => void res.json({ sub: findAuth(req)?.sub ?? null })
  app.all('/auth-only', guards.requireAuth(), who)
  app.all('/optional', guards.optionalAuth(), who)
  app.all('/user', guards.requireUser(), (req, res) => void res.json(getUser(req)))
}

async function startSignedIn(options: Parameters<typeof start>[0] = {}) {
  const mounted = await start({ host: guardedRoutes, ...options })
  const response = await signIn(mounted)
  const token = setCookieOf(response, 'access_token')?.value ?? (response.body.access_token as string)
  const ask = (path: string, headers: RawRequest['headers'] = {}, more: Partial<RawRequest> = {}) =>
    sendRaw(mounted.app, { method: 'GET', path, headers, ...more })
  return { mounted, token, userId: response.body.user_id as string, ask }
}

describe('a host that answers first', () => {
  test('R-104 a refusal that comes after the host’s own answer reaches no handler and ends no process', async () => {
    let reached = 0
    let refuse: (reason: Error) => void = () => undefined
    const find = () =>
      new Promise((_resolve, reject) => {
        refuse = reject
      })
    const { mounted, token } = await startSignedIn()
    const guards = createGuards({
      settings,
      logger: logTap(),
      now: mounted.clock.now,
      store: { users: { find } } as unknown as AuthStore, // all that requireUser asks
    })
    const app = express()
    app.use((_req, res, next) => {
      next()
      res.status(503).json({ from: 'the host' })
    })
    app.get('/user', guards.requireUser(), () => {
      reached += 1
    })
    app.use(((_error, _req, _res, next) => next()) as express.ErrorRequestHandler)

    const answer = await sendRaw(app, { method: 'GET', path: '/user', headers: { Authorization: `Bearer ${token}` } })
    refuse(new Error('too late'))
    await new Promise((resolve) => setImmediate(resolve))

    expect([answer.status, answer.body, reached]).toEqual([503, { from: 'the host' }, 0])
  })
})

describe('the handler behind a guard', () => {
  test('runs in a later turn of the event loop, also while a test of the host has replaced every timer', async () => {
    const seen: string[] = []
    const { token, userId, ask } = await startSignedIn({
      host: (app, auth) => {
        app.use((_req, _res, next) => {
          next()
          seen.push('guard has returned')
        })
        app.use('/auth-only', auth.guards.requireAuth(), (_req, _res, next) => {
          seen.push('handler')
          next()
        })
        guardedRoutes(app, auth)
      },
    })
    const headers = { Authorization: `Bearer ${token}` }
    seen.length = 0
    await ask('/auth-only', headers)
    expect(seen).toEqual(['guard has returned', 'handler'])

    vi.useFakeTimers({ toFake: ['setImmediate'] })
    try {
      expect((await ask('/auth-only', headers)).body).toEqual({ sub: userId })
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('R-101 the Authorization header', () => {
  test.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('R-101 the scheme %s is ours in any letter case', async (scheme) => {
    const { token, userId, ask } = await startSignedIn()

    expect((await ask('/auth-only', { Authorization: `${scheme} ${token}` })).body).toEqual({ sub: userId })
    expect((await ask('/auth-only', { Authorization: `${scheme}   ${token}` })).body).toEqual({ sub: userId })
  })

  test('R-101 a malformed Bearer header is 401 INVALID_TOKEN from every guard, never anonymous and never a 500', async () => {
    const { token, ask } = await startSignedIn()
    const malformed = [
      'Bearer',
      'Bearer ',
      'Bearer %E0%A4%A',
      `Bearer ${token} ${token}`,
      `Bearer ${token},Bearer ${token}`,
      `Bearer, ${token}`,
      `Bearer\t${token}`,
      `Bearer "${token}"`,
      `Bearer=${token}`,
      `Bearer ${token}\tx`,
      `Bearer ${'x'.repeat(8000)}`,
      'Bearer é',
      'Bearer {}',
    ]

    for (const header of malformed)
      for (const path of ['/auth-only', '/optional', '/user', '/auth/me']) {
        const answer = await ask(path, { Authorization: Buffer.from(header).toString('latin1') })
        expect([answer.status, answer.body['code']], `${path} ${header.slice(0, 40)}`).toEqual([401, 'INVALID_TOKEN'])
        expect(answer.headers['www-authenticate']).toBe('Bearer error="invalid_token"')
      }
  })

  test('R-101 two Authorization headers are 401, whatever they are', async () => {
    const { token, ask } = await startSignedIn()

    for (const pair of [
      [`Bearer ${token}`, `Bearer ${token}`],
      [`Bearer ${token}`, 'Basic eDp5'],
      ['Basic eDp5', `Bearer ${token}`],
    ])
      for (const path of ['/auth-only', '/optional'])
        expect((await ask(path, { Authorization: pair })).body['code'], path).toBe('INVALID_TOKEN')
  })

  test('R-101 another scheme is no token of ours: 401 UNAUTHORIZED, and anonymous where that is allowed', async () => {
    const { ask } = await startSignedIn()

    for (const header of ['Basic eDp5', 'Digest username="x"', 'Bearerx y', 'Bearer-x y', 'DPoP x', '']) {
      const refused = await ask('/auth-only', { Authorization: header })
      expect([refused.status, refused.body['code'], refused.headers['www-authenticate']], header).toEqual([401, 'UNAUTHORIZED', 'Bearer'])
      expect((await ask('/optional', { Authorization: header })).body).toEqual({ sub: null })
    }
  })

  test('R-101 a header of 16 KB is refused, and the process answers on', async () => {
    const { ask } = await startSignedIn()

    const answer = await ask('/auth-only', { Authorization: `Bearer ${'x'.repeat(15_000)}` })

    expect([401, 431]).toContain(answer.status)
    expect((await ask('/optional')).status).toBe(200)
  })
})

describe('R-102 WWW-Authenticate', () => {
  test('R-102 tells a token that was refused from none at all', async () => {
    const { ask } = await startSignedIn()

    expect((await ask('/auth-only')).headers['www-authenticate']).toBe('Bearer')
    expect((await ask('/auth-only', { Authorization: 'Bearer x' })).headers['www-authenticate']).toBe('Bearer error="invalid_token"')
    expect((await ask('/auth/me')).headers['www-authenticate']).toBe('Bearer')
  })
})

describe('R-103 where a token is read', () => {
  test('R-103 never in the query or the body', async () => {
    const { token, ask } = await startSignedIn({ before: [express.json(), express.urlencoded({ extended: false })] })
    const asked: [string, RawRequest['headers'], Partial<RawRequest>][] = [
      [`/auth-only?access_token=${token}`, {}, {}],
      [`/auth-only?authorization=Bearer%20${token}`, {}, {}],
      ['/auth-only', { 'Content-Type': 'application/json' }, { method: 'POST', body: JSON.stringify({ access_token: token }) }],
      ['/auth-only', { 'Content-Type': 'application/x-www-form-urlencoded' }, { method: 'POST', body: `access_token=${token}` }],
      ['/auth-only', { 'X-Access-Token': token, Cookie: `access_token=${token}` }, {}],
    ]

    for (const [path, headers, more] of asked) expect((await ask(path, headers, more)).body['code'], path).toBe('UNAUTHORIZED')
    expect((await ask(`/optional?access_token=${token}`)).body).toEqual({ sub: null })
  })

  test.each(['cookie', 'both'] as const)('in delivery %s the access cookie is read, and the header wins over it', async (tokenDelivery) => {
    const { mounted, token, userId, ask } = await startSignedIn({ settings: { ...settings, tokenDelivery } })
    const other = await signIn(mounted, mounted.browser(), { profile: { sub: 'S-2', email: 'other@example.test' } })
    const otherToken = setCookieOf(other, 'access_token')?.value

    expect((await ask('/auth-only', { Cookie: `access_token=${token}` })).body).toEqual({ sub: userId })
    const both = await ask('/auth-only', { Authorization: `Bearer ${otherToken}`, Cookie: `access_token=${token}` })
    expect(both.body).toEqual({ sub: other.body.user_id })
    const bad = await ask('/optional', { Authorization: 'Bearer x', Cookie: `access_token=${token}` })
    expect(bad.body['code']).toBe('INVALID_TOKEN')
    expect((await ask('/optional', { Cookie: 'access_token=x' })).body['code']).toBe('INVALID_TOKEN')
    expect((await ask('/optional', { Cookie: 'access_token=' })).body).toEqual({ sub: null })
    expect((await ask('/optional', { Cookie: 'access_token=j:{"a":1}' })).body).toEqual({ sub: null })
  })

  test('what the access cookie alone vouches for must come from this site; a bearer header may come from anywhere', async () => {
    const { token, ask } = await startSignedIn({ settings: { ...settings, tokenDelivery: 'cookie' } })
    const unlink = (headers: RawRequest['headers']) =>
      ask(
        '/auth/oauth/accounts/unlink',
        { 'Content-Type': 'application/json', ...headers },
        { method: 'POST', body: '{"provider":"corp"}' },
      )
    const [cookie, crossSite] = [{ Cookie: `access_token=${token}` }, { Origin: 'https://evil.example' }]

    const attached = { ...cookie, ...oldBrowser }
    expect((await unlink({ ...attached, ...crossSite })).body['code']).toBe('CSRF_VALIDATION_FAILED')
    expect((await unlink({ ...cookie, 'Sec-Fetch-Site': 'same-site' })).body['code']).toBe('CSRF_VALIDATION_FAILED')
    expect((await unlink({ Authorization: `Bearer ${token}`, ...attached, ...crossSite })).status).toBe(204)
    expect((await unlink(cookie)).body['code']).toBe('OAUTH_ACCOUNT_NOT_LINKED')
  })
})

describe('what the guards ask', () => {
  test('requireAuth and optionalAuth issue no query; requireUser issues one', async () => {
    const { mounted, token, ask } = await startSignedIn()
    const queries: string[] = []
    mounted.knex.on('query', ({ sql }: { sql: string }) => queries.push(sql))
    const headers = { Authorization: `Bearer ${token}` }

    expect((await ask('/auth-only', headers)).status).toBe(200)
    expect((await ask('/optional', headers)).status).toBe(200)
    expect(queries).toEqual([])
    expect((await ask('/user', headers)).status).toBe(200)
    expect(queries).toHaveLength(1)
  })

  test('requireUser: a deleted user is 401, an inactive one 403, and the handler is not reached', async () => {
    const { mounted, token, ask } = await startSignedIn()
    const handler = vi.fn()
    mounted.app.get('/private', mounted.auth.guards.requireUser(), handler)
    const headers = { Authorization: `Bearer ${token}` }

    await mounted.knex('auth_users').update({ is_active: false })
    const inactive = [await ask('/private', headers), await ask('/auth/me', headers)]
    await mounted.knex('auth_identities').del()
    await mounted.knex('auth_sessions').del()
    await mounted.knex('auth_users').del()
    const gone = [await ask('/private', headers), await ask('/auth/me', headers)]

    for (const answer of inactive) expect([answer.status, answer.body['code']]).toEqual([403, 'ACCOUNT_INACTIVE'])
    for (const answer of gone) expect([answer.status, answer.body['code']]).toEqual([401, 'UNAUTHORIZED'])
    expect(handler).not.toHaveBeenCalled()
  })

  test('R-106 requireAdmin asks the database: a demoted admin’s old token loses access at once, a claim gives none', async () => {
    const { mounted, token, userId, ask } = await startSignedIn()
    mounted.app.get('/admin', mounted.auth.guards.requireAdmin(), (req, res) => void res.json(getUser(req)))
    const visit = async (headers: RawRequest['headers'] = { Authorization: `Bearer ${token}` }) => {
      const { status, body } = await ask('/admin', headers)
      return [status, body['code'] ?? body['isAdmin']]
    }
    const become = (changes: object) => mounted.knex('auth_users').where({ id: userId }).update(changes)

    expect(await visit()).toEqual([403, 'FORBIDDEN'])
    await become({ is_admin: true })
    expect(await visit()).toEqual([200, true])
    await become({ is_admin: false })
    expect(await visit()).toEqual([403, 'FORBIDDEN'])
    await become({ is_admin: true, is_active: false })
    expect(await visit()).toEqual([403, 'ACCOUNT_INACTIVE'])
    expect(await visit({})).toEqual([401, 'UNAUTHORIZED'])
    expect(await visit({ Authorization: 'Bearer x' })).toEqual([401, 'INVALID_TOKEN'])
    await become({ is_active: true })
    await mounted.knex('auth_identities').del()
    await mounted.knex('auth_sessions').del()
    await mounted.knex('auth_users').del()
    expect(await visit()).toEqual([401, 'UNAUTHORIZED'])
  })

  test('R-106 requireAdmin is refused when it is made without a store, or where no column says who is one', async () => {
    const { knex } = await start()
    const guardsOf = (store?: AuthStore) => createGuards({ settings, logger: logTap(), ...(store && { store }) })

    expect(() => guardsOf().requireAdmin()).toThrow(/requireAdmin\(\) reads the user row: pass `store`/)
    const unmapped = createKnexStore({ knex, users: { columns: { isAdmin: false } } })
    expect(() => guardsOf(unmapped).requireAdmin()).toThrow(ConfigurationError)
    expect(() => guardsOf(unmapped).requireAdmin()).toThrow(/no such column; add one or map it/)
    expect(() => guardsOf(unmapped).requireUser()).not.toThrow()
    const bare = { users: { find: async () => null } } as unknown as AuthStore // an adapter that tells nothing of its columns
    expect(() => guardsOf(bare).requireAdmin()).toThrow(ConfigurationError)
  })

  test('R-104 R-106 requireAdmin is closed: an adapter that fails is 503, one that says anything but true is 403', async () => {
    const { mounted, token, userId } = await startSignedIn()
    const real = createKnexStore({ knex: mounted.knex })
    const handler = vi.fn((_req, res) => void res.json({}))
    const visit = async (find: () => Promise<unknown>) => {
      const store = { users: { fields: real.users.fields, find } } as unknown as AuthStore // what a careless adapter may answer
      const guards = createGuards({ settings, store, now: mounted.clock.now, logger: logTap() })
      const app = express().get('/admin', guards.requireAdmin(), handler)
      return (await sendRaw(app, { method: 'GET', path: '/admin', headers: { Authorization: `Bearer ${token}` } })).status
    }
    const user = await real.users.find(userId)

    expect(await visit(() => Promise.reject(new Error('down')))).toBe(503)
    for (const isAdmin of [1, 'true', 'false', {}, null, undefined]) expect(await visit(async () => ({ ...user, isAdmin }))).toBe(403)
    expect(handler).not.toHaveBeenCalled()
    expect(await visit(async () => ({ ...user, isAdmin: true }))).toBe(200)
  })

  test('what one request is shown of its token no other can change', async () => {
    const { token, userId, ask } = await startSignedIn({
      host: (app, { guards }) =>
        app.get('/spoil', guards.requireAuth(), (req, res) => {
          const claims = getAuth(req) as unknown as Record<string, unknown> & { amr: string[] }
          const spoilt = [
            () => Object.assign(claims, { sub: 'somebody else' }),
            () => claims.amr.push('otp'),
            () => Object.defineProperty(claims, 'is_admin', { value: true }),
            () => Object.setPrototypeOf(claims, { is_admin: true }),
          ].map((spoil) => {
            try {
              spoil()
              return 'spoilt'
            } catch {
              return 'refused'
            }
          })
          res.json({ spoilt, sub: claims['sub'], amr: claims.amr })
        }),
    })
    const untouched = { spoilt: Array(4).fill('refused'), sub: userId, amr: ['ext'] }

    for (let times = 0; times < 3; times++) expect((await ask('/spoil', { Authorization: `Bearer ${token}` })).body).toEqual(untouched)
  })

  test('a refused request reaches no handler, and its answer is not kept', async () => {
    const mounted = await start()
    const handler = vi.fn()
    for (const guard of [mounted.auth.guards.requireAuth(), mounted.auth.guards.requireUser()]) mounted.app.get('/private', guard, handler)

    const answer = await sendRaw(mounted.app, { method: 'GET', path: '/private' })

    expect(answer.body).toEqual({ code: 'UNAUTHORIZED', detail: expect.any(String), details: {} })
    expect(answer.headers['cache-control']).toBe('no-store')
    expect(handler).not.toHaveBeenCalled()
  })
})

describe('getAuth, findAuth and getUser', () => {
  test('getUser names its fields: no hash, no TOTP secret, no column the adapter adds', async () => {
    const { mounted, token, userId } = await startSignedIn()
    const real = createKnexStore({ knex: mounted.knex })
    const more = { totpSecret: 'canary', ssn: 'canary', passwordHint: 'canary' }
    const users = { ...real.users, find: async (id: string) => ({ ...(await real.users.find(id)), ...more }) }
    const store = { ...real, users } as unknown as AuthStore // an adapter that answers more than it should
    const { guards } = createAuthRouter({
      settings: { ...settings, ...linkTemplates },
      store,
      environment: 'test',
      now: mounted.clock.now,
      logger: logTap(),
    })
    const app = express()
    app.get('/user', guards.requireUser(), (req, res) => void res.json(getUser(req)))
    const headers = { Authorization: `Bearer ${token}` }

    const user = await sendRaw(app, { method: 'GET', path: '/user', headers })
    const me = await sendRaw(mounted.app, { method: 'GET', path: '/auth/me', headers })

    expect(user.body).toEqual({
      id: userId,
      email: 'ana@example.com',
      name: 'Ana Souza',
      isActive: true,
      isAdmin: false,
      createdAt: mounted.clock.now().toISOString(),
      updatedAt: mounted.clock.now().toISOString(),
      lastLoginAt: mounted.clock.now().toISOString(),
      mfaEnabled: false,
    })
    expect(Object.keys(me.body).sort()).toEqual(
      ['id', 'email', 'name', 'is_active', 'is_admin', 'created_at', 'updated_at', 'last_login_at', 'mfa_enabled'].sort(),
    )
    expect(user.text + me.text).not.toMatch(/canary|test\$/)
  })

  test('what they answer is frozen, and nothing is written on the request', async () => {
    const seen: unknown[] = []
    const { token, ask } = await startSignedIn({
      host: (app, { guards }) => {
        const names: string[][] = []
        const note: RequestHandler = (req, _res, next) => {
          names.push(Object.keys(req))
          next()
        }
        app.get('/frozen', note, guards.requireUser(), note, (req, res) => {
          seen.push(
            Object.isFrozen(getAuth(req)),
            Object.isFrozen(getAuth(req).amr),
            Object.isFrozen(getUser(req)),
            findAuth(req) === getAuth(req),
          )
          res.json({ written: names[1]?.filter((name) => !names[0]?.includes(name)) })
        })
      },
    })

    const answer = await ask('/frozen', { Authorization: `Bearer ${token}` })

    expect(answer.body).toEqual({ written: [] })
    expect(seen).toEqual([true, true, true, true])
  })

  test('without a guard they say which one is missing; findAuth says null', async () => {
    const request = {} as Parameters<typeof getAuth>[0] // no guard has seen it
    const { token, ask } = await startSignedIn({
      host: (app, { guards }) =>
        app.get('/no-user', guards.requireAuth(), (req, res) => {
          expect(() => getUser(req)).toThrow(/requireUser/)
          res.json(findAuth(req))
        }),
    })

    expect(() => getAuth(request)).toThrow(/requireAuth/)
    expect(() => getUser(request)).toThrow(/requireUser/)
    expect(findAuth(request)).toBeNull()
    expect((await ask('/no-user', { Authorization: `Bearer ${token}` })).status).toBe(200)
  })
})

describe('createGuards, without the router', () => {
  test('verifies the tokens of a router with the same secret, and no others', async () => {
    const { mounted, token, userId } = await startSignedIn()
    const ask = async (jwtSecret: string) => {
      const app = express()
      const guards = createGuards({ settings: { jwtSecret }, now: mounted.clock.now, logger: logTap() })
      app.get('/api', guards.requireAuth(), (req, res) => void res.json(getAuth(req)))
      return sendRaw(app, { method: 'GET', path: '/api', headers: { Authorization: `Bearer ${token}` } })
    }

    expect((await ask(testSecret)).body).toMatchObject({ sub: userId, amr: ['ext'] })
    expect((await ask('another secret of at least 32 bytes, made up')).body['code']).toBe('INVALID_TOKEN')
  })

  test('requireUser needs the store, and says so when it is made; with one it works', async () => {
    const { mounted, token, userId } = await startSignedIn()
    const options = { settings, now: mounted.clock.now, logger: logTap() }

    expect(() => createGuards(options).requireUser()).toThrow(ConfigurationError)
    expect(() => createGuards(options).requireUser()).toThrow(/`store`/)
    const app = express()
    const guards = createGuards({ ...options, store: createKnexStore({ knex: mounted.knex }) })
    app.get('/api', guards.requireUser(), (req, res) => void res.json(getUser(req).id))
    expect((await sendRaw(app, { method: 'GET', path: '/api', headers: { Authorization: `Bearer ${token}` } })).text).toBe(
      JSON.stringify(userId),
    )
  })

  test('R-104 missing or unknown configuration is refused at construction, not at the first request', () => {
    const make = (options: object) => () => createGuards(options as Parameters<typeof createGuards>[0]) // what JavaScript hosts can pass

    for (const options of [
      {},
      { settings: {} },
      { settings: { jwtSecret: 'short' } },
      { settings, stroe: {} },
      { settings: { ...settings, typo: 1 } },
    ])
      expect(make(options), JSON.stringify(options)).toThrow(ConfigurationError)
    expect(make(undefined as unknown as object)).toThrow(ConfigurationError)
  })
})
