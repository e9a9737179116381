import { randomBytes, randomUUID } from 'node:crypto'
import type { RequestHandler } from 'express'
import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { deriveKeyList } from '../../src/core/keys'
import { makeSessionToken, readSessionToken } from '../../src/sessions/find-session'
import { withSession } from '../../src/testing/records'
import { bearerOf, isAlive, otherPassword, password, post, sha256, signedIn } from '../local/people'
import { enrolled, onMfa } from '../mfa/people'
import { someTime } from '../social/accounts-at-hand'
import { setCookies } from '../social/redirect-steps'
import { baseUrl, testSecret } from '../support/app'
import { oldBrowser } from '../support/cookie-check'
import { databases } from '../support/databases'
import { recordQueries } from '../support/record-queries'
import { ask, attributesOf, by, type Device, device, idOf, isIn, logIn, member, rowsOf, sessionCookie } from './devices'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onMfa(sqlite)

describe('R-115 fixation', () => {
  test('R-115 a presented value is never adopted: not an invented one, not an attacker’s own, not the person’s last one', async () => {
    const host = await start()
    const [victim, mallory] = [await member(host), await device(host)]
    const earlier = await device(host, victim)
    const invented = randomBytes(32).toString('base64url')

    const values = new Set<string>()
    const inventedOfToday = randomBytes(84).toString('base64url')
    for (const presented of [invented, inventedOfToday, mallory.token, earlier.token, '', 'x'.repeat(4000), 'j:{"a":1}']) {
      const login = await logIn(host, victim, { Cookie: `auth_session=${presented}` })
      const { token } = sessionCookie(login)
      expect(token).not.toBe(presented)
      expect(await isIn(host, { cookie: `auth_session=${presented}` })).toBe(false)
      expect((await ask(host, 'get', '/session/me', { Cookie: `auth_session=${token}` })).body.user_id).toBe(victim.userId)
      values.add(token)
    }
    expect(values.size).toBe(7)
    // What was planted stands for nobody: neither before the login nor after it.
    expect(await isIn(host, { cookie: `auth_session=${invented}` })).toBe(false)
  })

  test('R-115 a login ends the session whose cookie came along, whosever it was, and no other; a refused one ends none', async () => {
    const host = await start()
    const [ana, bob] = [await member(host), await device(host)]
    const [phone, laptop] = [await device(host, ana), await device(host, ana)]

    const wrong = { email: ana.email, password: otherPassword }
    expect((await ask(host, 'post', '/session/login', by(laptop), wrong)).status).toBe(401)
    expect(await isIn(host, laptop)).toBe(true)

    const again = await device(host, ana, by(laptop))
    expect([await isIn(host, laptop), await isIn(host, again), await isIn(host, phone)]).toEqual([false, true, true])
    const shared = await device(host, ana, by(bob))
    expect([await isIn(host, bob), await isIn(host, shared)]).toEqual([false, true])
    expect(await rowsOf(host, bob.userId)).toEqual([])
  })
})

describe('what comes in', () => {
  const foreign: Record<string, string>[] = [
    { Origin: 'https://evil.example' },
    { Origin: 'null' },
    { Origin: 'tauri://localhost' },
    { Origin: 'capacitor://localhost:1' },
    { Origin: 'null', 'Sec-Fetch-Site': 'cross-site' },
    { 'Sec-Fetch-Site': 'cross-site' },
    { 'Sec-Fetch-Site': 'same-site' },
    { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'same-origin' },
  ]
  const own: Record<string, string>[] = [
    { Origin: baseUrl },
    { Origin: 'https://spa.example.test' },
    { Origin: 'capacitor://localhost' },
    { Origin: 'null', 'Sec-Fetch-Site': 'same-origin' },
    { 'Sec-Fetch-Site': 'same-origin' },
    { 'Sec-Fetch-Site': 'none' },
    {},
  ]

  test('R-122 R-123 whatever changes something is refused from another site, with 403 and no cookie, whether signed in or not', async () => {
    const host = await start({ settings: { trustedOrigins: ['https://spa.example.test', 'capacitor://localhost'] } })
    const ana = await device(host)
    const other = await device(host, ana)
    const id = await idOf(host, other)
    const changes = (headers: Record<string, string>) => ({
      login: () => ask(host, 'post', '/session/login', headers, { email: ana.email, password }),
      verify: () => ask(host, 'post', '/session/mfa/verify', headers, { mfa_token: 'x', code: '000000' }),
      end: () => ask(host, 'delete', `/session/${id}`, { ...by(ana), ...headers }),
      logout: () => ask(host, 'post', '/session/logout', { ...by(ana), ...headers }),
    })
    for (const headers of foreign)
      for (const [what, change] of Object.entries(changes({ ...headers, ...oldBrowser }))) {
        const answer = await change()
        expect([answer.status, answer.body.code, setCookies(answer)], `${what} ${JSON.stringify(headers)}`).toEqual([
          403,
          'CSRF_VALIDATION_FAILED',
          [],
        ])
      }
    expect([await isIn(host, ana), await isIn(host, other)]).toEqual([true, true])

    for (const headers of own) {
      const person = await device(host)
      const statuses = [
        (await ask(host, 'post', '/session/login', headers, { email: person.email, password })).status,
        (await ask(host, 'post', '/session/mfa/verify', headers, { mfa_token: 'x', code: '000000' })).status,
        (await ask(host, 'delete', `/session/${await idOf(host, person)}`, { ...by(person), ...headers })).status,
        (await ask(host, 'post', '/session/logout', headers)).status,
      ]
      expect([headers, ...statuses]).toEqual([headers, 200, 401, 204, 204])
    }
    const read = await ask(host, 'get', '/session/me', { ...by(ana), Origin: 'https://spa.example.test' })
    expect(read.status).toBe(200)
    expect(Object.keys(read.headers).filter((name) => name.startsWith('access-control-'))).toEqual([])
  })

  test('R-120 only JSON changes anything: a form, text and a body without a type are 415, and a missing body is 422', async () => {
    const host = await start()
    const ana = await device(host)
    const credentials = JSON.stringify({ email: ana.email, password })
    for (const path of ['/session/login', '/session/mfa/verify', '/session/logout'])
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'application/jsonp'])
        expect((await ask(host, 'post', path, { ...by(ana), 'Content-Type': type }).send(credentials)).status, `${path} ${type}`).toBe(415)
    for (const body of [
      undefined,
      {},
      { email: ana.email },
      { email: [ana.email], password },
      { email: ana.email, password: { length: 20 } },
    ])
      expect((await ask(host, 'post', '/session/login', {}, body)).status, JSON.stringify(body)).toBe(422)
    expect(await isIn(host, ana)).toBe(true)
  })

  test('nobody is 401 without a cookie; other methods are 405, and HEAD is as GET', async () => {
    const host = await start()
    const ana = await device(host)
    for (const [method, path] of [
      ['get', '/session/me'],
      ['get', '/session/list'],
      ['delete', `/session/${await idOf(host, ana)}`],
    ] as const) {
      const bearerOnly = bearerOf(await signedIn(host))
      for (const headers of [{}, bearerOnly, { Cookie: `auth_session=${'a'.repeat(43)}` }] as Record<string, string>[]) {
        const { status, body } = await ask(host, method, path, headers)
        expect([path, status, body.code]).toEqual([path, 401, 'UNAUTHORIZED'])
      }
    }
    for (const [method, path, allow] of [
      ['post', '/session/me', 'GET, HEAD'],
      ['delete', '/session/list', 'GET, HEAD'],
      ['get', '/session/login', 'POST'],
      ['get', '/session/logout', 'POST'],
      ['get', '/session/anything', 'DELETE'],
    ] as const) {
      const { status, headers } = await ask(host, method, path, by(ana))
      expect([path, status, headers['allow']]).toEqual([path, 405, allow])
    }
  })

  test('address and device are kept as plain text, cut to what a row holds', async () => {
    const behindProxies: RequestHandler = (req, _res, next) => {
      Object.defineProperty(req, 'ip', { value: `${'f'.repeat(60)}\u0007` })
      next()
    }
    const host = await start({ before: [behindProxies] })
    const ana = await member(host)
    // What a client can put in a header at all, and, without HTTP, whatever a host hands on.
    await device(host, ana, { 'User-Agent': `\tMouse ${'x'.repeat(600)}` })
    await host.auth.service.logInToSession({
      email: ana.email,
      password,
      userAgent: ' a\r\nb\0\u001b[31m\u202ec\ud800\u2028 ',
      ip: '\u0000',
    })
    await host.auth.service.logInToSession({ email: ana.email, password })
    await device(host, ana, { 'User-Agent': '' })

    const [sent, handed, nothing, empty] = await rowsOf(host, ana.userId).then((rows) =>
      rows.sort((a, b) => (b.userAgent?.length ?? 0) - (a.userAgent?.length ?? 0)),
    )
    expect([sent?.userAgent?.length, sent?.userAgent?.startsWith('Mouse xxx'), sent?.ip]).toEqual([512, true, 'f'.repeat(45)])
    expect([handed?.userAgent, handed?.ip]).toEqual(['ab[31mc', null])
    expect([nothing?.userAgent, empty?.userAgent]).toEqual([null, null])
  })

  test('the routes go by the table alone: absent without it in any delivery, and the same in each', async () => {
    const { knex } = await start()
    const none = await start({ options: { store: createKnexStore({ knex, sessions: false }) } })
    for (const [method, path] of [
      ['post', '/session/login'],
      ['post', '/session/mfa/verify'],
      ['get', '/session/me'],
      ['post', '/session/logout'],
      ['delete', '/session/x'],
    ] as const) {
      const { status, headers } = await ask(none, method, path)
      expect([path, status, headers['content-type']]).toEqual([path, 404, expect.stringMatching(/html/)]) // the host's own
    }
    await expect(none.auth.service.listSessions('x')).rejects.toThrow('The store has no sessions')
    for (const tokenDelivery of ['cookie', 'both'] as const) {
      const host = await start({ settings: { tokenDelivery } })
      const login = await logIn(host, await member(host))
      expect([Object.keys(login.body), setCookies(login).map((line) => line.split('=')[0])]).toEqual([
        ['user_id', 'expires_at'],
        ['auth_device', 'auth_session', 'auth_hint'],
      ])
    }
  })
})

describe('budgets', () => {
  test('a wrong password counts the same at /login and /session/login; a success clears the address', async () => {
    const host = await start()
    const ana = await member(host)
    const wrong = (path: string) => post(host, path, { email: ana.email, password: otherPassword })
    for (const path of ['/login', '/session/login', '/login', '/session/login']) expect((await wrong(path)).status).toBe(401)
    expect((await logIn(host, ana)).status).toBe(200)
    for (let count = 0; count < 5; count++) await wrong('/session/login')
    for (const path of ['/login', '/session/login']) {
      const refused = await post(host, path, { email: ana.email, password })
      expect([path, refused.status, refused.body.code, setCookies(refused)]).toEqual([path, 429, 'LOGIN_THROTTLED', []])
    }
  })

  test('a wrong code counts the same at /mfa/verify and /session/mfa/verify', async () => {
    const host = await start()
    const ana = await enrolled(host)
    const mfa_token = (await logIn(host, ana)).body.mfa_token
    for (let count = 0; count < 5; count++) {
      const path = count % 2 === 0 ? '/mfa/verify' : '/session/mfa/verify'
      expect((await post(host, path, { mfa_token, code: '000000' })).body.code).toBe('MFA_CODE_INVALID')
    }
    for (const path of ['/mfa/verify', '/session/mfa/verify'])
      expect((await post(host, path, { mfa_token, code: ana.app.nextCode() })).body.code).toBe('MFA_THROTTLED')
  })
})

describe('the second factor', () => {
  test('an enrolled account gets a challenge and no cookie; the code opens the session, with otp, and ends the one that came along', async () => {
    const host = await start()
    const ana = await enrolled(host)
    const earlier = await device(host)
    const told: string[] = []
    for (const name of ['login', 'challenge'] as const) host.auth.events.on(name, ({ amr }) => told.push(`${name} ${amr}`))

    const challenge = await logIn(host, ana, by(earlier))
    expect([challenge.body.mfa_required, setCookies(challenge), await rowsOf(host, ana.userId)]).toEqual([true, [], []])
    expect(await isIn(host, earlier)).toBe(true)
    const { mfa_token } = challenge.body
    const wrong = await ask(host, 'post', '/session/mfa/verify', by(earlier), { mfa_token, code: '000000' })
    expect([wrong.status, setCookies(wrong)]).toEqual([401, []])
    const verified = await ask(host, 'post', '/session/mfa/verify', by(earlier), { mfa_token, code: ana.app.nextCode() })

    expect([verified.status, verified.body]).toEqual([200, { user_id: ana.userId, expires_at: expect.any(String) }])
    const { cookie } = sessionCookie(verified)
    expect((await ask(host, 'get', '/session/me', { Cookie: cookie })).body.amr).toEqual(['pwd', 'otp'])
    expect(await isIn(host, earlier)).toBe(false)
    expect(told).toEqual(['challenge pwd', 'login pwd,otp'])
    const replay = await post(host, '/session/mfa/verify', { mfa_token, code: ana.app.nextCode() })
    expect([replay.body.code, setCookies(replay)]).toEqual(['MFA_TOKEN_INVALID', []])
  })

  test('one challenge is one success, whichever kind of session it opens; with MFA off there is no second step', async () => {
    const host = await start()
    const ana = await enrolled(host)
    const first = (await post(host, '/login', { email: ana.email, password })).body.mfa_token
    expect((await post(host, '/session/mfa/verify', { mfa_token: first, code: ana.app.nextCode() })).status).toBe(200)
    expect((await post(host, '/mfa/verify', { mfa_token: first, code: ana.app.nextCode() })).body.code).toBe('MFA_TOKEN_INVALID')
    const second = (await logIn(host, ana)).body.mfa_token
    const pair = await post(host, '/mfa/verify', { mfa_token: second, code: ana.app.nextCode() })
    expect([pair.status, typeof pair.body.access_token]).toEqual([200, 'string'])

    const off = await start({ settings: { mfaEnabled: false } })
    expect((await post(off, '/session/mfa/verify', {})).headers['content-type']).toMatch(/html/)
    expect((await logIn(off, ana)).body.user_id).toBe(ana.userId)
  })

  test('confirming a factor ends every session; taking it off ends every one but that of the request', async () => {
    const host = await start()
    const ana = await device(host)
    const person = await enrolled(host)
    const { secret: _secret, ...rest } = person
    expect(await isIn(host, ana)).toBe(true)
    const verified = async () => {
      const { mfa_token } = (await logIn(host, person)).body
      return { ...rest, ...sessionCookie(await post(host, '/session/mfa/verify', { mfa_token, code: person.app.nextCode() })) }
    }
    const [shown, other] = [await verified(), await verified()]
    const body = { password, code: person.app.nextCode() }
    const disabled = await ask(host, 'post', '/mfa/disable', { ...bearerOf(person), ...by(shown) }, body)
    expect(disabled.status, disabled.text).toBe(204)
    expect([await isIn(host, shown), await isIn(host, other)]).toEqual([false, false]) // the access token comes before the cookie
    expect(await isAlive(host, person.refreshToken)).toBe(true)

    const { secret } = await host.auth.service.enrollTotp(person.userId)
    const { authenticator } = await import('../mfa/authenticator')
    host.clock.advance(60)
    const code = authenticator(secret, host.clock).code()
    await host.auth.service.confirmTotp({ userId: person.userId, amr: ['pwd'], code })
    expect(await isIn(host, ana)).toBe(true)
  })
})

describe('password change', () => {
  test('keeps the session of the access token, and no session whose cookie came along', async () => {
    const host = await start()
    const person = await signedIn(host)
    const mine = await device(host, person)
    const change = { current_password: password, new_password: otherPassword }
    const answer = await ask(host, 'post', '/password-change', { ...bearerOf(person), Cookie: mine.cookie }, change)
    expect([answer.status, await isIn(host, mine), await isAlive(host, person.refreshToken)]).toEqual([204, false, true])
  })

  test('without HTTP the kept session is named by its id or its cookie’s value, as getSession and a login give them', async () => {
    const host = await start()
    const bob = await device(host)
    for (const keepOf of [
      async (mine: Device) => ({ sessionId: await idOf(host, mine) }),
      async ({ token }: Device) => ({ sessionToken: token }),
    ]) {
      const mine = await device(host)
      const other = await device(host, mine)
      const change = { userId: mine.userId, currentPassword: password, newPassword: otherPassword }
      await host.auth.service.changePassword({ ...change, keep: await keepOf(mine) })
      expect([await isIn(host, mine), await isIn(host, other)]).toEqual([true, false])
      const back = { userId: mine.userId, currentPassword: otherPassword, newPassword: password }
      await host.auth.service.changePassword({ ...back, keep: await keepOf(bob) })
      expect([await isIn(host, mine), await isIn(host, bob)]).toEqual([false, true])
    }
  })
})

describe('without HTTP', () => {
  test('a verb for every route: what it opens the routes take, and the other way round; observers are told', async () => {
    const host = await start()
    const { service, events } = host.auth
    const told: [string, object][] = []
    for (const name of ['login', 'logout', 'session.revoked'] as const) events.on(name, (payload) => told.push([name, payload]))
    const ana = await member(host)

    const opened = await service.logInToSession({ email: ana.email, password, ip: '192.0.2.7', userAgent: 'a job' })
    if (opened.kind !== 'session') throw new Error('no second factor was enrolled')
    const { sessionToken, sessionId } = opened
    expect(opened).toEqual({ kind: 'session', userId: ana.userId, amr: ['pwd'], sessionId, sessionToken, expiresAt: expect.any(Date) })
    expect(await isIn(host, { cookie: `auth_session=${sessionToken}` })).toBe(true)
    const byRoute = await device(host, ana)
    const session = { id: sessionId, userId: ana.userId, amr: ['pwd'], ip: '192.0.2.7', userAgent: 'a job' }
    expect(await service.findSession(sessionToken)).toMatchObject({ session, user: { id: ana.userId, email: ana.email } })
    expect(JSON.stringify(await service.findSession(sessionToken))).not.toMatch(/hash/i)
    expect(await service.findSession('unknown')).toBeNull()
    const [one, other, ...more] = await service.listSessions(ana.userId)
    expect([one, other].map((item) => item?.id).sort()).toEqual([sessionId, await idOf(host, byRoute)].sort())
    expect(more).toEqual([])
    expect(JSON.stringify([one, other])).not.toMatch(/hash/i)

    await expect(service.revokeSession(ana.userId, 'x')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await service.revokeSession(ana.userId, await idOf(host, byRoute))
    await service.logOutSession('unknown')
    await service.logOutSession(sessionToken)
    await service.logOutSession(sessionToken)
    expect(await service.listSessions(ana.userId)).toEqual([])
    expect(told).toEqual([
      ['login', { userId: ana.userId, amr: ['pwd'] }],
      ['login', { userId: ana.userId, amr: ['pwd'] }],
      ['session.revoked', { userId: ana.userId, count: 1 }],
      ['logout', { userId: ana.userId, allSessions: false }],
    ])
  })

  test('a logout of all ends tokens and sessions alike, unless its own session has expired; revokeSessions counts what was alive', async () => {
    const host = await start({ settings: { sessionTtlSeconds: 600 } })
    const counts: unknown[] = []
    host.auth.events.on('session.revoked', ({ count }) => counts.push(count))
    const ana = await signedIn(host)
    const [expired] = [await device(host, ana)]
    host.clock.advance(600)
    const phone = await device(host, ana)

    await ask(host, 'post', '/session/logout', by(expired), { all_sessions: true })
    expect([await isIn(host, phone), (await rowsOf(host, ana.userId)).length]).toEqual([true, 1])
    await ask(host, 'post', '/session/logout', by(phone), { all_sessions: true })
    expect(await rowsOf(host, ana.userId)).toEqual([])
    expect((await post(host, '/refresh', { refresh_token: ana.refreshToken })).status).toBe(401)

    const store = createKnexStore({ knex: host.knex })
    await device(host, ana)
    await withSession(store, { userId: ana.userId, kind: 'session', createdAt: someTime, lastSeenAt: someTime, expiresAt: someTime })
    expect(await host.auth.service.revokeSessions(ana.userId)).toBe(1)
    expect([counts, await rowsOf(host, ana.userId)]).toEqual([[1], []])
  })

  test('a login that the host rolls back leaves no session', async () => {
    const host = await start()
    const ana = await member(host)
    const store = createKnexStore({ knex: host.knex })
    const work = host.knex.transaction(async (trx) => {
      await host.auth.service.using(store.using(trx)).logInToSession({ email: ana.email, password })
      throw new Error('the host changed its mind')
    })
    await expect(work).rejects.toThrow('the host changed its mind')
    expect(await rowsOf(host, ana.userId)).toEqual([])
  })
})

describe('a token of one kind is no token of the other (attack X10)', () => {
  const asCookie = (token: string) => ({ cookie: `auth_session=${token}` })

  test.each(['bearer', 'cookie', 'both'] as const)(
    'in delivery %s it is refused wherever it is shown, and ends nothing',
    async (tokenDelivery) => {
      const host = await start({ settings: { tokenDelivery } })
      const ana = await signedIn(host)
      const laptop = await device(host, ana)
      const base = tokenDelivery === 'both' ? '/cookie' : ''

      for (const path of ['/refresh', '/logout']) {
        if (tokenDelivery !== 'cookie') {
          const { status, body } = await post(host, path, { refresh_token: laptop.token })
          expect([path, status, body.code]).toEqual(path === '/refresh' ? [path, 401, 'INVALID_TOKEN'] : [path, 204, undefined])
        }
        if (tokenDelivery !== 'bearer') {
          const { status, body } = await ask(host, 'post', `${base}${path}`, { Cookie: `refresh_token=${laptop.token}` }, {})
          expect([path, status, body.code]).toEqual(path === '/refresh' ? [path, 401, 'INVALID_TOKEN'] : [path, 204, undefined])
        }
      }
      await expect(host.auth.service.refresh(laptop.token)).rejects.toMatchObject({ code: 'INVALID_TOKEN' })
      await host.auth.service.logOut(laptop.token, { allSessions: true })
      expect(await isIn(host, asCookie(ana.refreshToken))).toBe(false)
      expect((await ask(host, 'post', '/session/logout', by(asCookie(ana.refreshToken)), { all_sessions: true })).status).toBe(204)
      expect(await host.auth.service.findSession(ana.refreshToken)).toBeNull()
      await host.auth.service.logOutSession(ana.refreshToken, { allSessions: true })
      await device(host, undefined, by(asCookie(ana.refreshToken))) // ends a session cookie that comes along, and nothing else

      expect(await isIn(host, laptop)).toBe(true)
      expect((await host.auth.service.refresh(ana.refreshToken)).kind).toBe('session')
    },
  )

  test('nor does it say which session a password change keeps', async () => {
    const host = await start()
    const ana = await signedIn(host)
    const laptop = await device(host, ana)
    const keep = { refreshToken: laptop.token, sessionToken: ana.refreshToken }
    await host.auth.service.changePassword({ userId: ana.userId, currentPassword: password, newPassword: otherPassword, keep })
    expect(await isIn(host, laptop)).toBe(false)
    await expect(host.auth.service.refresh(ana.refreshToken)).rejects.toMatchObject({ code: 'INVALID_TOKEN' })
  })
})

describe('a token that nobody here made', () => {
  const key = (secret: string) => deriveKeyList(secret, 'session-token')
  const otherSecret = 'another secret of forty characters, or so'
  const idOfToken = (token: string) => readSessionToken(key(testSecret), 'tokens', token) ?? { id: '', generation: -1 }
  /** One bit of the last byte. */
  const spoiled = (token: string) => {
    const bytes = Buffer.from(token, 'base64url')
    bytes[83] = (bytes[83] ?? 0) ^ 1
    return bytes.toString('base64url')
  }

  test('of the right shape and with a wrong MAC costs no query, at the routes of both kinds', async () => {
    const host = await start()
    const ana = await signedIn(host)
    const laptop = await device(host, ana)
    const { id } = idOfToken(ana.refreshToken)
    const junk = [
      'a'.repeat(112),
      randomBytes(84).toString('base64url'),
      spoiled(ana.refreshToken),
      spoiled(laptop.token),
      makeSessionToken(key(otherSecret), 'tokens', { id, generation: 0 }),
      makeSessionToken(key(otherSecret), 'session', { id: await idOf(host, laptop), generation: 0 }),
      makeSessionToken(deriveKeyList(testSecret, 'refresh'), 'tokens', { id, generation: 0 }),
    ]
    const recorded = recordQueries(host.knex)
    for (const token of junk) {
      expect(token).toHaveLength(112)
      expect((await post(host, '/refresh', { refresh_token: token })).body.code).toBe('INVALID_TOKEN')
      expect((await post(host, '/logout', { refresh_token: token, all_sessions: true })).status).toBe(204)
      expect(await isIn(host, { cookie: `auth_session=${token}` })).toBe(false)
      expect((await ask(host, 'post', '/session/logout', { Cookie: `auth_session=${token}` }, { all_sessions: true })).status).toBe(204)
    }
    expect(recorded.stop()).toEqual([])
    expect(await isIn(host, laptop)).toBe(true)
    expect((await post(host, '/refresh', { refresh_token: ana.refreshToken })).status).toBe(200)
  })

  test('ends no session, whatever generation it claims; one that was made and used does', async () => {
    const host = await start()
    const reused: object[] = []
    host.auth.events.on('refresh.reused', (payload) => reused.push(payload))
    const ana = await signedIn(host)
    const other = await host.auth.service.logIn({ email: ana.email, password })
    const { id } = idOfToken(ana.refreshToken)
    const refresh = async (refresh_token: string) => (await post(host, '/refresh', { refresh_token })).status
    let living = ana.refreshToken
    const used: string[] = []
    for (let generation = 0; generation < 3; generation++) {
      used.push(living)
      living = (await post(host, '/refresh', { refresh_token: living })).body.refresh_token
    }
    expect(idOfToken(living)).toEqual({ id, generation: 3 })

    const strangers = [
      ...[0, 2, 3, 4].map((generation) => makeSessionToken(key(otherSecret), 'tokens', { id, generation })),
      // Under our key, and still nobody's: such a one was never handed out.
      ...[3, 4, 1_000].map((generation) => makeSessionToken(key(testSecret), 'tokens', { id, generation })),
      makeSessionToken(key(testSecret), 'tokens', { id: randomUUID(), generation: 0 }),
    ]
    for (const token of strangers) expect(await refresh(token)).toBe(401)
    expect(reused).toEqual([])
    living = (await post(host, '/refresh', { refresh_token: living })).body.refresh_token
    expect(idOfToken(living)).toEqual({ id, generation: 4 })

    expect(await refresh(used[0] ?? '')).toBe(401)
    expect(await refresh(living)).toBe(401)
    expect(reused).toEqual([{ userId: ana.userId, familyId: id }])
    const store = createKnexStore({ knex: host.knex })
    expect((await store.sessions.find({ id }))?.session).toMatchObject({ generation: 4, revokedAt: host.clock.now() })
    expect(await refresh(other.kind === 'session' ? other.refreshToken : '')).toBe(200)
  })

  test('a session cookie of an older generation is no cookie, and ends nothing', async () => {
    const host = await start()
    const laptop = await device(host)
    const store = createKnexStore({ knex: host.knex })
    const id = await idOf(host, laptop)
    const newer = makeSessionToken(key(testSecret), 'session', { id, generation: 1 })
    await store.sessions.update(id, { tokenHash: sha256(newer), generation: 1 })

    expect(await isIn(host, laptop)).toBe(false)
    expect((await ask(host, 'post', '/session/logout', by(laptop))).status).toBe(204)
    expect(await isIn(host, { cookie: `auth_session=${newer}` })).toBe(true)
  })
})

test('the name of the cookie is the host’s: sessionCookieName, also with the __Host- prefix', async () => {
  const host = await start({ settings: { sessionCookieName: '__Host-sid', cookieSecure: true } })
  const login = await logIn(host, await member(host))
  const { cookie } = sessionCookie(login, '__Host-sid')
  expect(attributesOf(login)).toBeNull()
  expect(await isIn(host, { cookie })).toBe(true)
  expect(await isIn(host, { cookie: cookie.replace('__Host-sid', 'auth_session') })).toBe(false)
})
