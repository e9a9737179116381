import type { Express, RequestHandler } from 'express'
import supertest from 'supertest'
import { describe, expect, test, vi } from 'vitest'
import {
  type AccessTokenClaimsHook,
  type AuthStore,
  createAuthRouter,
  createGuards,
  createKnexStore,
  findAuth,
  getAuth,
  getSession,
  getUser,
} from '../../src'
import { openSessionAs } from '../../src/testing'
import { type LocalHost, type LocalOptions, otherPassword, password, post, sha256 } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { mfaSettings, onMfa } from '../mfa/people'
import { attributesOf, by, type Device, device, idOf, member, rowsOf, sessionCookie } from '../server-session/devices'
import { cookieAttributes, cookiePair } from '../social/redirect-steps'
import { type Mounted, testSecret } from '../support/app'
import { oldBrowser } from '../support/cookie-check'
import { databases } from '../support/databases'
import { logTap } from '../support/log-tap'
import { recordQueries } from '../support/record-queries'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start: startOn } = onMfa(sqlite)

const show: RequestHandler = (req, res) => void res.json({ auth: findAuth(req) })

/** Each guard before a route of the host. */
function guarded(app: Express, { guards }: Pick<Mounted['auth'], 'guards'>, base = '/api'): void {
  const all = {
    requireAuth: guards.requireAuth(),
    requireMfa: guards.requireMfa(),
    requireUser: guards.requireUser(),
    requireAdmin: guards.requireAdmin(),
    requireLiveSession: guards.requireLiveSession(),
    requireFresh: guards.requireFresh(),
    optionalAuth: guards.optionalAuth(),
  }
  for (const [name, guard] of Object.entries(all)) app.get(`${base}/${name}`, guard, show)
}

const refusing = ['requireAuth', 'requireMfa', 'requireUser', 'requireAdmin', 'requireLiveSession', 'requireFresh']

function start({ settings, options, host = guarded }: Pick<LocalOptions, 'settings' | 'options' | 'host'> = {}): Promise<LocalHost> {
  const wide = { throttle: { routes: false, mail: false }, ...options } as const
  return startOn({ host, settings: { tokenDelivery: 'session', ...settings }, options: wide })
}

const signIn = (host: LocalHost, person?: { email: string; userId: string }, headers = {}) => device(host, person, headers, '/login')
const get = ({ app }: Pick<Mounted, 'app'>, path: string, headers: Record<string, string> = {}) => supertest(app).get(path).set(headers)
const cleared = expect.stringMatching(/^auth_session=; Path=\/; Expires=Thu, 01 Jan 1970/)
const clearedHint = 'auth_hint=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; SameSite=Lax'

describe('who is in, by the session cookie', () => {
  test('getAuth has the fields of a token, from the rows, and sessionId; getSession and getUser know the rest', async () => {
    const host = await start({
      host: (app, { guards }) =>
        void app.get('/api', guards.requireAuth(), (req, res) => {
          res.json({ auth: getAuth(req), session: getSession(req), user: getUser(req) })
        }),
    })
    const ana = await signIn(host)
    const [row] = await rowsOf(host, ana.userId)
    const { body } = await get(host, '/api', by(ana)).expect(200)
    const seconds = (instant: Date | null | undefined) => Math.floor(Number(instant) / 1000)
    expect(body.auth).toEqual({
      sub: ana.userId,
      email: ana.email,
      amr: ['pwd'],
      iat: seconds(row?.createdAt),
      exp: seconds(row?.expiresAt),
      auth_time: seconds(row?.authenticatedAt),
      sid: row?.id,
      sessionId: row?.id,
      typ: 'access',
    })
    expect([body.session.id, body.user.email]).toEqual([row?.id, ana.email])
    expect(JSON.stringify(body)).not.toMatch(/hash|secret/i)
  })

  test('every guard lets in whom it is for, by one query; a guard behind it asks none', async () => {
    const host = await start({
      host(app, auth) {
        guarded(app, auth)
        app.get('/twice', auth.guards.requireAuth(), auth.guards.requireUser(), auth.guards.requireLiveSession(), show)
      },
    })
    const { id } = await host.auth.service.findSession((await signIn(host)).token).then((found) => found?.user ?? { id: '' })
    await host.knex('auth_users').where({ id }).update({ is_admin: true })
    const { cookies } = await openSessionAs(host.auth, { id }, { amr: ['pwd', 'otp'] })
    for (const path of [...[...refusing, 'optionalAuth'].map((name) => `/api/${name}`), '/twice', '/auth/me']) {
      const queries = recordQueries(host.knex)
      const { status } = await get(host, path, { Cookie: cookies.cookie })
      expect([path, status, queries.stop().length]).toEqual([path, 200, 1])
    }
  })

  test('a guard behind one of another router judges by its own cookie, not by what the other one found', async () => {
    const [staff, shop] = [await start(), await start({ settings: { sessionCookieName: 'shop_session' } })]
    for (const name of ['requireLiveSession', 'requireFresh', 'requireAuth'] as const)
      shop.app.get(`/both/${name}`, staff.auth.guards.requireAuth(), shop.auth.guards[name](), show)
    const clerk = await signIn(staff)
    const { email, userId } = await member(shop)
    const login = await post(shop, '/login', { email, password })
    const customer = sessionCookie(login, 'shop_session')
    for (const name of ['requireLiveSession', 'requireFresh', 'requireAuth']) {
      const both = await get(shop, `/both/${name}`, { Cookie: `${clerk.cookie}; ${customer.cookie}` })
      expect([name, both.status, both.body.auth?.sub]).toEqual([name, 200, userId])
      expect((await get(shop, `/both/${name}`, by(clerk))).status).toBe(401)
    }
  })

  test('at most once a minute the session moves on, by one more statement, and the cookie goes out again', async () => {
    const host = await start()
    const ana = await signIn(host)
    host.clock.advance(59)
    expect((await get(host, '/api/requireUser', by(ana))).headers['set-cookie']).toBeUndefined()
    host.clock.advance(1)
    const queries = recordQueries(host.knex)
    const slid = await get(host, '/api/requireUser', by(ana))
    expect([slid.status, queries.stop().length, attributesOf(slid)?.['max-age'], slid.headers['cache-control']]).toEqual([
      200,
      2,
      '86400',
      'no-store',
    ])
    expect(sessionCookie(slid).token).toBe(ana.token)
    expect((await rowsOf(host, ana.userId))[0]?.lastSeenAt).toEqual(host.clock.now())
    expect((await get(host, '/api/requireUser', by(ana))).headers['set-cookie']).toBeUndefined()
  })

  test('a cookie whose session is over counts as no cookie, and every guard clears it', async () => {
    const host = await start({ settings: { sessionTtlSeconds: 600 } })
    const [ended, expired, gone] = [await signIn(host), await signIn(host), await signIn(host)]
    await host.auth.service.logOutSession(ended.token)
    await host.knex('auth_users').where({ id: gone.userId }).delete()
    host.clock.advance(600)
    const cookies = [ended, expired, gone, { cookie: 'auth_session=nonsense' }, { cookie: `${expired.cookie}x` }].map(by)
    for (const headers of cookies) {
      for (const name of refusing) {
        const { status, body, headers: answered } = await get(host, `/api/${name}`, headers)
        expect([name, status, body.code, answered['set-cookie'], answered['www-authenticate']]).toEqual([
          name,
          401,
          'UNAUTHORIZED',
          [cleared, clearedHint],
          'Bearer',
        ])
      }
      const anonymous = await get(host, '/api/optionalAuth', headers)
      expect([anonymous.status, anonymous.body, anonymous.headers['set-cookie'], anonymous.headers['cache-control']]).toEqual([
        200,
        { auth: null },
        [cleared, clearedHint],
        'no-store',
      ])
    }
    const nobody = await get(host, '/api/optionalAuth')
    expect([nobody.status, nobody.body, nobody.headers['set-cookie']]).toEqual([200, { auth: null }, undefined])
  })

  test('a late request with the value that /reauthenticate replaced is 401, and does not clear the new one', async () => {
    const host = await start()
    const ana = await signIn(host)
    const renewed = sessionCookie(await post(host, '/reauthenticate', { password }, by(ana)).expect(200))
    for (const name of refusing) {
      const late = await get(host, `/api/${name}`, by(ana))
      expect([name, late.status, late.headers['set-cookie']]).toEqual([name, 401, undefined])
    }
    expect((await get(host, '/api/requireUser', by(renewed))).status).toBe(200)
    await host.auth.service.revokeSessions(ana.userId)
    expect((await get(host, '/api/requireUser', by(ana))).headers['set-cookie']).toEqual([cleared, clearedHint])
  })

  test('a guard that moves the session on beside /reauthenticate does not set the old value again', async () => {
    const { knex } = await start()
    const store = createKnexStore({ knex })
    let meanwhile = async () => {}
    const slow: AuthStore = {
      ...store,
      sessions: {
        ...store.sessions,
        async touch(...slide) {
          await meanwhile()
          return store.sessions.touch(...slide)
        },
      },
    }
    const host = await start({ options: { store: slow } })
    const ana = await signIn(host)
    host.clock.advance(60)
    meanwhile = async () => {
      meanwhile = async () => {}
      const row = (await rowsOf(host, ana.userId))[0]
      await store.sessions.update(row?.id ?? '', { tokenHash: sha256('the value that /reauthenticate gave'), generation: 1 })
    }
    const late = await get(host, '/api/requireUser', by(ana))
    expect([late.status, late.headers['set-cookie']]).toEqual([401, undefined])
  })

  test('an inactive account is 401, and 403 ACCOUNT_INACTIVE where the user is asked for', async () => {
    const host = await start()
    const ana = await signIn(host)
    await host.knex('auth_users').where({ id: ana.userId }).update({ is_active: false, is_admin: true })
    const answers: Record<string, unknown> = {}
    for (const name of [...refusing, 'optionalAuth']) {
      const { status, body } = await get(host, `/api/${name}`, by(ana))
      answers[name] = [status, body.code]
    }
    const [out, inactive] = [
      [401, 'UNAUTHORIZED'],
      [403, 'ACCOUNT_INACTIVE'],
    ]
    expect(answers).toEqual({
      requireAuth: out,
      requireMfa: out,
      optionalAuth: out,
      requireLiveSession: out,
      requireFresh: out,
      requireUser: inactive,
      requireAdmin: inactive,
    })
  })

  test('a Bearer header is never ignored: 401 INVALID_TOKEN from every guard and every route, also beside a good cookie', async () => {
    const host = await start()
    const ana = await signIn(host)
    for (const authorization of ['Bearer x.y.z', `Bearer ${ana.token}`, 'Bearer']) {
      for (const path of [...[...refusing, 'optionalAuth'].map((name) => `/api/${name}`), '/auth/me', '/auth/sessions']) {
        const { status, body, headers } = await get(host, path, { ...by(ana), Authorization: authorization })
        const challenge = 'Bearer error="invalid_token"'
        expect([path, status, body.code, headers['www-authenticate']]).toEqual([path, 401, 'INVALID_TOKEN', challenge])
      }
    }
  })

  test('a request that was held back between two guards is judged by the session as it is then', async () => {
    const host = await start({
      host(app, { guards, service }) {
        const end: RequestHandler = async (req, _res, next) => {
          await service.revokeSessions(getAuth(req).sub)
          const begun = performance.now()
          const later = vi.spyOn(performance, 'now').mockReturnValue(begun + 1_001)
          next()
          later.mockRestore()
        }
        app.get('/held', guards.requireAuth(), end, guards.requireUser(), show)
      },
    })
    expect((await get(host, '/held', by(await signIn(host)))).status).toBe(401)
  })

  test('an adapter that fails is 503, never anonymous', async () => {
    const broken = createKnexStore({ knex: (await startOn()).knex })
    const host = await start({
      options: { store: { ...broken, sessions: { ...broken.sessions, find: () => Promise.reject(new Error('down')) } } },
    })
    const { cookie } = await signIn(await start()) // its MAC is good: both have one secret
    for (const name of [...refusing, 'optionalAuth']) expect((await get(host, `/api/${name}`, { Cookie: cookie })).status).toBe(503)
  })

  test('what a guard of another router read is not taken for a session of this one', async () => {
    const other = await start({ settings: { jwtSecret: 'the secret of another router, long enough for it' } })
    const host = await start({
      host(app, auth) {
        app.get('/api', other.auth.guards.requireAuth(), auth.guards.requireLiveSession(), show)
      },
    })
    const ana = await signIn(other)
    await host.knex('auth_sessions').delete()
    expect((await get(host, '/api', by(ana))).status).toBe(401)
  })
})

describe('the routes of the account and of administration, by the session cookie', () => {
  test('they know the person, list the session as the current one, and end it', async () => {
    const host = await start()
    const [desk, phone] = [await signIn(host), await signIn(host)]
    const again = await signIn(host, desk)
    const list = await get(host, '/auth/sessions', by(desk)).expect(200)
    expect(list.body.map(({ kind, is_current }: Record<string, unknown>) => [kind, is_current]).sort()).toEqual([
      ['session', false],
      ['session', true],
    ])
    const others = await post(host, '/sessions/revoke-others', {}, by(desk)).expect(204)
    expect((await get(host, '/auth/me', by(again))).status).toBe(401)
    expect((await get(host, '/auth/me', by(phone))).status).toBe(200)
    const kept = { ...desk, ...sessionCookie(others) }
    const id = await idOf(host, kept)
    const ended = await supertest(host.app).delete(`/auth/sessions/${id}`).set(by(kept)).expect(204)
    expect(ended.headers['set-cookie']).toContainEqual(cleared)
    expect((await get(host, '/auth/me', by(kept))).status).toBe(401)
  })

  test('a password change keeps this session alone; a change and a confirmation give its cookie a new value', async () => {
    const host = await start()
    const desk = await signIn(host)
    const phone = await signIn(host, desk)
    const change = await post(host, '/password-change', { current_password: password, new_password: otherPassword }, by(desk)).expect(204)
    const kept = sessionCookie(change)
    const statuses = await Promise.all([desk, kept, phone].map(async (device) => (await get(host, '/auth/me', by(device))).status))
    expect(statuses).toEqual([401, 200, 401])
    const fresh = await post(host, '/reauthenticate', { password: otherPassword }, by(kept)).expect(200)
    expect(fresh.body).toEqual({ user_id: desk.userId, expires_at: expect.any(String), mfa_required: false })
    expect((await get(host, '/auth/me', by(kept))).status).toBe(401)
    expect((await get(host, '/auth/me', by(sessionCookie(fresh)))).status).toBe(200)
  })

  test('a factor begins and ends in the session, which goes on; requireMfa then lets it in', async () => {
    const host = await start()
    const ana = await signIn(host)
    // A session that is older than the proof of its address is as good as ever: nobody could refresh it.
    await host
      .knex('auth_users')
      .where({ id: ana.userId })
      .update({ email_verified_at: new Date(host.clock.now().getTime() + 1_000) })
    const { body } = await post(host, '/mfa/enroll', {}, by(ana)).expect(200)
    const app = authenticator(body.secret, host.clock)
    const confirmed = await post(host, '/mfa/confirm', { code: app.code() }, by(ana)).expect(200)
    const now = sessionCookie(confirmed)
    expect((await get(host, '/api/requireMfa', by(ana))).status).toBe(401)
    expect((await get(host, '/api/requireMfa', by(now))).status).toBe(200)
    expect((await rowsOf(host, ana.userId)).map(({ id }) => id)).toEqual([await idOf(host, { ...ana, ...now })])
  })

  test('an administrator by cookie does what one does by token, and a person who is none gets 403', async () => {
    const host = await start()
    const [admin, ana] = [await signIn(host), await signIn(host)]
    expect((await get(host, '/auth/admin/users', by(admin))).body.code).toBe('FORBIDDEN')
    await host.knex('auth_users').where({ id: admin.userId }).update({ is_admin: true })
    expect((await get(host, '/auth/admin/users', by(admin))).body.code).toBe('MFA_REQUIRED')
    const { cookies } = await openSessionAs(host.auth, { id: admin.userId }, { amr: ['pwd', 'otp'] })
    const byFactor = { Cookie: cookies.cookie }
    expect((await get(host, '/auth/admin/users', byFactor)).status).toBe(200)
    await post(host, `/admin/users/${ana.userId}/revoke-sessions`, {}, byFactor).expect(204)
    expect((await get(host, '/auth/me', by(ana))).status).toBe(401)
  })

  test('another site writes nothing by the cookie, at our own routes', async () => {
    const host = await start()
    const ana = await signIn(host)
    const attached = { ...by(ana), ...oldBrowser }
    const foreign = { ...attached, Origin: 'https://elsewhere.example', 'Sec-Fetch-Site': 'cross-site' }
    for (const path of ['/password-change', '/logout', '/reauthenticate', '/mfa/enroll', '/sessions/revoke-others', '/login'])
      expect([path, (await post(host, path, {}, foreign)).body.code]).toEqual([path, 'CSRF_VALIDATION_FAILED'])
    expect((await get(host, '/auth/me', by(ana))).status).toBe(200)
  })
})

describe('where a session begins and ends', () => {
  test('R-118 a login ends the session that the browser presents, whoever it belongs to, and takes no value from it', async () => {
    const host = await start()
    const planted = await signIn(host)
    const ana = await signIn(host, undefined, by(planted))
    expect(ana.token).not.toBe(planted.token)
    expect([(await get(host, '/auth/me', by(planted))).status, (await get(host, '/auth/me', by(ana))).status]).toEqual([401, 200])
  })

  test('logout is 204 whatever came, clears the cookie, and ends this session, or all of them', async () => {
    const host = await start()
    const desk = await signIn(host)
    const [phone, tablet] = [await signIn(host, desk), await signIn(host, desk)]
    for (const headers of [by(desk), by(desk), {}, { Cookie: 'auth_session=nonsense' }]) {
      const { status, headers: answered } = await post(host, '/logout', {}, headers)
      expect([status, answered['set-cookie']]).toEqual([204, expect.arrayContaining([cleared, clearedHint])])
    }
    const isIn = async (one: Device) => (await get(host, '/auth/me', by(one))).status === 200
    expect([await isIn(desk), await isIn(phone)]).toEqual([false, true])
    await post(host, '/logout', { all_sessions: true }, by(phone)).expect(204)
    expect([await isIn(phone), await isIn(tablet)]).toEqual([false, false])
  })

  test('deactivation and reset end it at once', async () => {
    const host = await start()
    const [ana, bob] = [await signIn(host), await signIn(host)]
    await host.auth.service.deactivate(ana.userId)
    const link = await host.auth.service.requestPasswordReset(bob.email)
    await post(host, '/password-reset/confirm', { token: link?.token, new_password: otherPassword }).expect(200)
    for (const one of [ana, bob]) expect((await get(host, '/auth/me', by(one))).status).toBe(401)
  })

  test('the service opens sessions, and the one it is given gives way', async () => {
    const host = await start()
    const ana = await member(host)
    const origin = { ip: '192.0.2.7', userAgent: 'a phone' }
    const first = await host.auth.service.logIn({ ...ana, password, ...origin })
    const opened = { kind: 'session', userId: ana.userId, amr: ['pwd'] }
    const session = { sessionId: expect.any(String), sessionToken: expect.any(String), expiresAt: expect.any(Date) }
    expect(first).toEqual({ ...opened, ...session })
    expect((await rowsOf(host, ana.userId))[0]).toMatchObject(origin)
    const sessionToken = 'sessionToken' in first ? String(first.sessionToken) : ''
    await host.auth.service.logIn({ ...ana, password, sessionToken })
    expect(await host.auth.service.findSession(sessionToken)).toBeNull()
  })
})

describe('remember: false', () => {
  test('the session cookie ends with the browser, also when it goes out again', async () => {
    const host = await start()
    const ana = await member(host)
    const login = await post(host, '/login', { email: ana.email, password, remember: false }).expect(200)
    const lines = [attributesOf(login)]
    host.clock.advance(60)
    const slid = await get(host, '/api/requireUser', by(sessionCookie(login))).expect(200)
    lines.push(attributesOf(slid))
    const fresh = await post(host, '/reauthenticate', { password }, by(sessionCookie(login))).expect(200)
    lines.push(attributesOf(fresh))
    for (const attributes of lines) expect(attributes).toEqual({ path: '/', httponly: '', samesite: 'Lax' })
    expect(attributesOf(await post(host, '/login', { email: ana.email, password, remember: true }))?.['max-age']).toBe('86400')
  })

  test.each([
    ['a table of sessions', true],
    ['stateless refresh tokens', false],
  ])('in delivery cookie the two cookies end with the browser, also after a refresh: %s', async (_name, keepsSessions) => {
    const { knex } = await startOn()
    const store = keepsSessions ? createKnexStore({ knex }) : createKnexStore({ knex, sessions: false })
    const host = await startOn({ settings: { tokenDelivery: 'cookie' }, options: { store, throttle: { routes: false } } })
    const ana = await member(host)
    const login = await post(host, '/login', { email: ana.email, password, remember: false }).expect(200)
    const refreshed = await post(host, '/refresh', {}, { Cookie: cookiePair(login, 'refresh_token') ?? '' }).expect(200)
    for (const answer of [login, refreshed])
      for (const name of ['access_token', 'refresh_token'])
        expect(Object.keys(cookieAttributes(answer, name) ?? {}).sort()).toEqual(['httponly', 'path', 'samesite'])
  })

  test('the challenge carries it to the second step', async () => {
    const host = await start()
    const ana = await signIn(host)
    const { body } = await post(host, '/mfa/enroll', {}, by(ana))
    const app = authenticator(body.secret, host.clock)
    await post(host, '/mfa/confirm', { code: app.code() }, by(ana)).expect(200)
    const challenge = await post(host, '/login', { email: ana.email, password, remember: false })
    const verified = await post(host, '/mfa/verify', { mfa_token: challenge.body.mfa_token, code: app.nextCode() }).expect(200)
    expect(attributesOf(verified)).not.toHaveProperty('max-age')
  })
})

describe('what only guards ask', () => {
  const claims: AccessTokenClaimsHook = async ({ email }) => ({ roles: email.startsWith('local') ? ['editor'] : [], sid: undefined })

  test('the host is asked for its claims once a request, and only by a guard that looks at them', async () => {
    let asked = 0
    const host = await start({
      options: {
        accessTokenClaims(...given) {
          asked += 1
          return claims(...given)
        },
      },
      host(app, { guards }) {
        app.get('/plain', guards.requireUser(), show)
        app.get('/editors', guards.requireRole('editor'), guards.requireClaim('roles', Array.isArray), show)
        app.get('/owners', guards.requireRole('owner'), show)
      },
    })
    const ana = await signIn(host)
    expect([(await get(host, '/plain', by(ana))).status, asked]).toEqual([200, 0])
    const editors = await get(host, '/editors', by(ana))
    expect([editors.status, editors.body.auth.roles, editors.body.auth.sub, asked]).toEqual([200, ['editor'], ana.userId, 1])
    const owners = await get(host, '/owners', by(ana))
    expect([owners.status, owners.body.code, asked]).toEqual([403, 'FORBIDDEN', 2])
  })

  test('createGuards needs a store and no key, and knows the claims of the host', async () => {
    const host = await start()
    const ana = await signIn(host)
    const logger = logTap()
    const { knex } = host
    const guards = createGuards({
      settings: { tokenDelivery: 'session', cookieSecure: false },
      store: createKnexStore({ knex }),
      accessTokenClaims: claims,
      now: host.clock.now,
      logger,
    })
    host.app.get('/other/role', guards.requireRole('editor'), show)
    guarded(host.app, { guards } as Pick<Mounted['auth'], 'guards'>, '/other')
    expect((await get(host, '/other/role', by(ana))).status).toBe(200)
    expect((await get(host, '/other/requireUser', by(ana))).status).toBe(200)
    expect((await get(host, '/other/requireUser', { Cookie: 'auth_session=nonsense' })).status).toBe(401)
  })

  test('boot names what does not fit', async () => {
    const { knex } = await start()
    const { sessions: _sessions, ...store } = createKnexStore({ knex })
    const settings = { jwtSecret: testSecret, tokenDelivery: 'session', publicUrl: 'https://app.example.test', ...mfaSettings } as const
    const options = { environment: 'test', logger: logTap() } as const
    expect(() => createAuthRouter({ ...options, settings, store })).toThrow(/tokenDelivery.*'session'.*keeps no sessions/)
    const issuing = { ...settings, accessTokenIssuer: 'https://app.example.test', accessTokenAudience: 'api' }
    expect(() => createAuthRouter({ ...options, settings: issuing, store: createKnexStore({ knex }) })).toThrow(/accessTokenIssuer/)
    expect(() => createGuards({ settings: { tokenDelivery: 'session' } }).requireAuth()).toThrow(/store/)
    expect(() => createGuards({ settings: { jwtSecret: testSecret }, accessTokenClaims: claims })).toThrow(/tokenDelivery 'session'/)
  })
})
