import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import jwt from 'jsonwebtoken'
import supertest from 'supertest'
import { describe, expect, test, vi } from 'vitest'
import { createGuards, createKnexStore, getAuth } from '../../src'
import { deriveKeyList, secretAccessKey } from '../../src/core/keys'
import { signClaims } from '../../src/sessions/access-keys'
import { bearerOf, onLocal, password, post, signedIn } from '../local/people'
import { testSecret } from '../support/app'
import { databases } from '../support/databases'
import { recordQueries } from '../support/record-queries'
import { claimsAt, makeKey, publicJwk, tokenUnder } from '../support/signing-keys'
import { codeOf, deliveries, foreign, handshakeOf, own, person, withHeaders } from './handshakes'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onLocal(sqlite)
const wide = { options: { throttle: { login: false, routes: false } } } as const

describe.each(deliveries)('guards.verify() in delivery %s', (tokenDelivery) => {
  const startHere = () => start({ ...wide, settings: { tokenDelivery } })

  test('knows the person as requireLiveSession() does, by one statement that reads', async () => {
    const host = await startHere()
    let claims: unknown
    host.app.get('/claims', host.auth.guards.requireLiveSession(), (req, res) => {
      claims = getAuth(req)
      res.end()
    })
    const ada = await person(host, tokenDelivery)
    await supertest(host.app).get('/claims').set(ada.headers).expect(200)
    host.clock.advance(120) // a guard would extend a session cookie now
    const queries = recordQueries(host.knex)
    const found = await host.auth.guards.verify({ headers: ada.headers })
    expect(queries.stop()).toEqual([expect.stringMatching(/^select /)])
    expect(found.claims).toEqual(claims)
    expect(found).toMatchObject({ userId: ada.userId, sessionId: found.claims.sid, expiresAt: expect.any(Date) })
    expect(found.expiresAt.getTime()).toBe(found.claims.exp * 1000)
  })

  test('refuses with the code of the guard: nobody, a bad credential, an ended session, an inactive account', async () => {
    const host = await startHere()
    host.app.get('/live', host.auth.guards.requireLiveSession(), (_req, res) => void res.end())
    const [ada, left, out] = [await person(host, tokenDelivery), await person(host, tokenDelivery), await person(host, tokenDelivery)]
    await host.auth.service.revokeSession(left.userId, (await host.auth.guards.verify(left)).sessionId ?? '')
    await host.knex('auth_users').where({ id: out.userId }).update({ is_active: false })
    const broken = { ...ada.headers, ...handshakeOf(tokenDelivery, { token: `${ada.token}x` }) }
    const cases = { nobody: {}, broken, left: left.headers, out: out.headers, ada: ada.headers }
    for (const [name, headers] of Object.entries(cases)) {
      const { status, body } = await supertest(host.app).get('/live').set(headers)
      expect([name, await codeOf(host.auth.guards.verify({ headers }))]).toEqual([name, status === 200 ? 'in' : body.code])
    }
    expect(await codeOf(host.auth.guards.verify({ headers: {} }))).toBe('UNAUTHORIZED')
    expect(await codeOf(host.auth.guards.verify(ada))).toBe('in')
  })

  test('reads headers only, not the URL, the query, the body or Sec-WebSocket-Protocol', async () => {
    const host = await startHere()
    const { token } = await person(host, tokenDelivery)
    const everywhere = {
      headers: {
        host: 'app.example.test',
        'sec-websocket-protocol': `bearer, ${token}`,
        'x-access-token': token,
        'x-refresh-token': token,
      },
      url: `/socket?access_token=${token}&token=${token}`,
      query: { access_token: token, token },
      body: { access_token: token, token },
      auth: { token },
      cookies: { access_token: token, auth_session: token },
    }
    expect(await codeOf(host.auth.guards.verify(everywhere))).toBe('UNAUTHORIZED')
  })

  test('waits for a silent database for unitTimeoutSeconds, then 503; a database that fails is 503 too', async () => {
    const host = await startHere()
    const ada = await person(host, tokenDelivery)
    const store = createKnexStore({ knex: host.knex })
    const guardsWith = (find: () => Promise<never>) =>
      createGuards({
        settings: { jwtSecret: testSecret, tokenDelivery, unitTimeoutSeconds: 1 },
        now: host.clock.now,
        store: { ...store, sessions: { ...store.sessions, find } },
      })
    const failing = guardsWith(() => Promise.reject(new Error('connection lost')))
    const silent = guardsWith(() => new Promise(() => undefined))
    expect(await codeOf(failing.verify(ada))).toBe('SERVICE_UNAVAILABLE')
    expect(await codeOf(silent.verify(ada))).toBe('SERVICE_UNAVAILABLE')
  })
})

describe.each(['cookie', 'both', 'session'] as const)('a cookie in delivery %s', (tokenDelivery) => {
  const startHere = (settings: object = {}) => start({ ...wide, settings: { tokenDelivery, ...settings } })

  test('from another site is 403, however its Origin is written', async () => {
    const host = await startHere({ trustedOrigins: ['https://admin.example.test'] })
    const { verify } = host.auth.guards
    const { cookie = '' } = (await person(host, tokenDelivery)).headers
    const at = { host: 'app.example.test', cookie }
    const origin = 'CSRF_VALIDATION_FAILED origin'
    const site = 'CSRF_VALIDATION_FAILED site'
    const cases: [expected: string, headers: object][] = [
      ['in', at], // an app, which has no browser's headers
      ['in', { ...at, origin: own }],
      ['in', { ...at, ORIGIN: [own] }],
      ['in', { ...at, origin: 'https://admin.example.test' }],
      ['in', { ...at, origin: 'null', 'Sec-Fetch-Site': 'same-origin' }],
      ['in', { ...at, 'sec-fetch-site': 'same-origin' }],
      ['in', new Headers({ ...at, origin: own })],
      ['in', new Map(Object.entries({ ...at, Origin: own }))],
      [origin, { ...at, origin: foreign }],
      [origin, { ...at, ORIGIN: foreign }],
      [origin, { ...at, origin: own.toUpperCase() }],
      [origin, { ...at, origin: [own, own] }],
      [origin, { ...at, origin: [own, foreign] }],
      [origin, { ...at, origin: own, Origin: own }],
      [origin, { ...at, origin: '' }],
      [origin, { ...at, origin: 'null' }],
      [origin, { ...at, origin: 'null', 'sec-fetch-site': ['same-origin', 'same-origin'] }],
      [origin, new Headers({ ...at, origin: foreign })],
      [
        origin,
        new Headers([
          ['host', at.host],
          ['cookie', cookie],
          ['Origin', own],
          ['origin', foreign],
        ]),
      ],
      [site, { ...at, 'sec-fetch-site': 'same-site' }],
      [site, { ...at, 'sec-fetch-site': 'cross-site' }],
      [site, { ...at, 'Sec-Fetch-Site': ['none', 'none'] }],
    ]
    for (const [expected, headers] of cases) expect([headers, await codeOf(verify(withHeaders(headers)))]).toEqual([headers, expected])
  })

  test('without publicUrl, the origin of the Host header is ours; two Host headers are none', async () => {
    const host = await start({ ...wide, settings: { tokenDelivery, oauthEnabled: false, oauthRedirectBaseUrl: '' } })
    const { verify } = host.auth.guards
    const { cookie = '' } = (await person(host, tokenDelivery)).headers
    expect(await codeOf(verify({ headers: { cookie, host: 'shop.example.test', origin: 'https://shop.example.test' } }))).toBe('in')
    const other = { cookie, host: 'shop.example.test', origin: own }
    expect(await codeOf(verify({ headers: other }))).toBe('CSRF_VALIDATION_FAILED origin')
    const twice = { cookie, host: ['app.example.test', 'app.example.test'], origin: own }
    expect(await codeOf(verify({ headers: twice }))).toBe('CSRF_VALIDATION_FAILED origin')
  })

  test('of the device is not read: alone it is nobody, and it names no session for a token without sid', async () => {
    const host = await startHere({ accessTokenSessionClaims: false })
    const { email, token } = await signedIn(host)
    const login = await post(host, tokenDelivery === 'both' ? '/cookie/login' : '/login', { email, password })
    const device = /auth_device=[^;]+/.exec(String(login.headers['set-cookie']))?.[0] ?? ''
    expect(device).not.toBe('')
    const { verify } = host.auth.guards
    const at = { host: 'app.example.test', origin: own }
    const queries = recordQueries(host.knex)
    expect(await codeOf(verify({ headers: { ...at, cookie: device } }))).toBe('UNAUTHORIZED')
    expect(queries.stop()).toEqual([])
    if (tokenDelivery === 'session') return
    const found = await verify({ headers: { ...at, cookie: `access_token=${token}; ${device}` } })
    expect(found.sessionId).toBeNull()
  })

  test('sent as a list is joined; two cookies of one name are none, even if one of them is ours', async () => {
    const host = await startHere()
    const { verify } = host.auth.guards
    const { headers } = await person(host, tokenDelivery)
    const { cookie = '', ...rest } = headers
    const name = cookie.split('=', 1)[0]
    const cases: [expected: string, cookie: unknown][] = [
      ['in', ['theme=dark', cookie, 'lang=en']],
      ['UNAUTHORIZED', [cookie, `${name}=planted`]],
      ['UNAUTHORIZED', `${name}=planted; ${cookie}`],
      ['UNAUTHORIZED', `${cookie}; ${cookie}`],
      ['UNAUTHORIZED', []],
      ['UNAUTHORIZED', undefined],
    ]
    for (const [expected, sent] of cases)
      expect([sent, await codeOf(verify(withHeaders({ ...rest, Cookie: sent })))]).toEqual([sent, expected])
    expect(await codeOf(verify(withHeaders({ ...rest, cookie: 'theme=dark', Cookie: cookie })))).toBe('in')
  })
})

describe('the header Authorization', () => {
  test('needs no origin, and no cookie stands in for a bad one', async () => {
    for (const tokenDelivery of ['bearer', 'cookie', 'both'] as const) {
      const host = await start({ ...wide, settings: { tokenDelivery } })
      const { verify } = host.auth.guards
      const { token, headers } = await person(host, tokenDelivery)
      const { authorization: _none, ...cookie } = headers
      const cases: [expected: string, headers: object][] = [
        ['in', { authorization: `Bearer ${token}`, origin: foreign, 'sec-fetch-site': 'cross-site' }],
        ['in', { AUTHORIZATION: `bearer ${token}` }],
        ['in', { Authorization: [`Bearer ${token}`] }],
        ['in', new Headers({ Authorization: `Bearer ${token}` })],
        ['INVALID_TOKEN', { ...cookie, authorization: 'Bearer a.b.c' }],
        ['INVALID_TOKEN', { ...cookie, authorization: 'Bearer' }],
        ['INVALID_TOKEN', { authorization: [`Bearer ${token}`, `Bearer ${token}`] }],
        ['INVALID_TOKEN', { ...cookie, authorization: ['Basic YTpi', 'Basic YTpi'] }],
        ['INVALID_TOKEN', { authorization: `Bearer ${token}`, Authorization: `Bearer ${token}` }],
        [
          'INVALID_TOKEN',
          new Headers([
            ['authorization', `Bearer ${token}`],
            ['authorization', `Bearer ${token}`],
          ]),
        ],
      ]
      for (const [expected, sent] of cases)
        expect([tokenDelivery, sent, await codeOf(verify(withHeaders(sent)))]).toEqual([tokenDelivery, sent, expected])
    }
  })

  test('is no credential in delivery session, beside a good session cookie too', async () => {
    const host = await start({ ...wide, settings: { tokenDelivery: 'session' } })
    const { headers, token } = await person(host, 'session')
    expect(await codeOf(host.auth.guards.verify({ headers: { ...headers, authorization: `Bearer ${token}` } }))).toBe('INVALID_TOKEN')
  })

  test('of a real upgrade that has it or Origin twice counts as two values', async () => {
    const host = await start({ ...wide, settings: { tokenDelivery: 'cookie' } })
    const { token } = await signedIn(host)
    const server = createServer()
    const answers: Promise<string>[] = []
    server.on('upgrade', (req: IncomingMessage, socket) => {
      answers.push(codeOf(host.auth.guards.verify(req)))
      socket.destroy()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const upgrade = (...lines: string[]) =>
      new Promise<void>((resolve) => {
        const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
        client.on('error', () => undefined).on('close', () => resolve())
        client.write(
          ['GET /socket HTTP/1.1', 'Host: app.example.test', 'Connection: Upgrade', 'Upgrade: websocket', ...lines, '', ''].join('\r\n'),
        )
      })
    const header = `Authorization: Bearer ${token}`
    const cookie = `Cookie: access_token=${token}`
    await upgrade(header)
    await upgrade(header, header)
    await upgrade(header, 'authorization: Basic YTpi')
    await upgrade(cookie, `Origin: ${own}`)
    await upgrade('Cookie: theme=dark', cookie, `Origin: ${own}`)
    await upgrade(cookie, `Origin: ${own}`, `Origin: ${own}`)
    await upgrade(cookie, `Origin: ${foreign}`)
    server.close()
    expect(await Promise.all(answers)).toEqual([
      'in',
      'INVALID_TOKEN',
      'INVALID_TOKEN',
      'in',
      'in',
      'CSRF_VALIDATION_FAILED origin',
      'CSRF_VALIDATION_FAILED origin',
    ])
  })
})

describe('guards.verifyToken()', () => {
  test('knows the person of an access token, by one statement that reads', async () => {
    const host = await start(wide)
    const ada = await signedIn(host)
    const queries = recordQueries(host.knex)
    const found = await host.auth.guards.verifyToken(ada.token)
    expect(queries.stop()).toEqual([expect.stringMatching(/^select /)])
    const claims = jwt.decode(ada.token) as jwt.JwtPayload
    expect(found).toMatchObject({ userId: ada.userId, sessionId: claims['sid'], claims, expiresAt: new Date(Number(claims.exp) * 1000) })
  })

  test('refuses everything that is no access token with INVALID_TOKEN, an expired one with TOKEN_EXPIRED', async () => {
    const host = await start(wide)
    const { verifyToken } = host.auth.guards
    const ada = await signedIn(host)
    const claims = jwt.decode(ada.token) as jwt.JwtPayload
    const ownKey = secretAccessKey(deriveKeyList(testSecret, 'access'))
    const ofAnotherKind = signClaims(ownKey, { ...claims, typ: 'mfa' }, 'JWT')
    expect(await codeOf(verifyToken(signClaims(ownKey, claims, 'JWT')))).toBe('in')
    const nothing = [undefined, null, '', 'x', 7, true, {}, [], [ada.token], { token: ada.token }, Symbol('token'), () => ada.token]
    for (const token of [...nothing, `Bearer ${ada.token}`, `${ada.token}x`, ada.refreshToken, ofAnotherKind, 'x'.repeat(1_000_000)])
      expect([typeof token, await codeOf(verifyToken(token))]).toEqual([typeof token, 'INVALID_TOKEN'])
    const ended = await signedIn(host)
    await post(host, '/logout', { refresh_token: ended.refreshToken }).expect(204)
    expect(await codeOf(verifyToken(ended.token))).toBe('INVALID_TOKEN')
    await host.knex('auth_users').where({ id: ada.userId }).update({ is_active: false })
    expect(await codeOf(verifyToken(ada.token))).toBe('ACCOUNT_INACTIVE')
    host.clock.advance(901)
    expect(await codeOf(verifyToken(ada.token))).toBe('TOKEN_EXPIRED')
  })

  test('of a deleted account or a deleted session is INVALID_TOKEN', async () => {
    const host = await start(wide)
    const [gone, other] = [await signedIn(host), await signedIn(host)]
    await host.knex('auth_users').where({ id: gone.userId }).delete()
    await host.knex('auth_sessions').where({ user_id: other.userId }).delete()
    expect(await codeOf(host.auth.guards.verifyToken(gone.token))).toBe('INVALID_TOKEN')
    expect(await codeOf(host.auth.guards.verifyToken(other.token))).toBe('INVALID_TOKEN')
  })

  test('in delivery session is INVALID_TOKEN, for the value of a session cookie too', async () => {
    const host = await start({ ...wide, settings: { tokenDelivery: 'session' } })
    const { token } = await signedIn(host)
    expect(await codeOf(host.auth.guards.verifyToken(token))).toBe('INVALID_TOKEN')
  })

  test('asks no database for a token without sid and without a store with sessions', async () => {
    const host = await start({ ...wide, settings: { accessTokenSessionClaims: false } })
    const { token, userId } = await signedIn(host)
    const { sessions: _none, ...store } = createKnexStore({ knex: host.knex })
    const withSid = await signedIn(await start(wide))
    const queries = recordQueries(host.knex)
    expect(await host.auth.guards.verifyToken(token)).toMatchObject({ userId, sessionId: null })
    const guards = createGuards({ settings: { jwtSecret: testSecret }, store, now: host.clock.now })
    const { sid } = jwt.decode(withSid.token) as jwt.JwtPayload
    expect(await guards.verifyToken(withSid.token)).toMatchObject({ userId: withSid.userId, sessionId: sid })
    expect(queries.stop()).toEqual([])
  })
})

describe('createGuards()', () => {
  test('has both with the secret and a store: a session that has ended is refused', async () => {
    const host = await start(wide)
    const ada = await signedIn(host)
    const guards = createGuards({
      settings: { jwtSecret: testSecret },
      store: createKnexStore({ knex: host.knex }),
      now: host.clock.now,
      logger: host.logs,
    })
    expect(await guards.verify({ headers: bearerOf(ada) })).toMatchObject({ userId: ada.userId })
    await post(host, '/logout', { refresh_token: ada.refreshToken }).expect(204)
    expect(await codeOf(guards.verify({ headers: bearerOf(ada) }))).toBe('INVALID_TOKEN')
    expect(await codeOf(guards.verifyToken(ada.token))).toBe('INVALID_TOKEN')
  })

  test('checks the rows of a host’s store: the session of another person or id is refused', async () => {
    const host = await start(wide)
    const [ada, bob] = [await signedIn(host), await signedIn(host)]
    const store = createKnexStore({ knex: host.knex })
    const bobs = await store.sessions.find({ id: (await host.auth.guards.verifyToken(bob.token)).sessionId ?? '' })
    const guards = createGuards({
      settings: { jwtSecret: testSecret },
      store: { ...store, sessions: { ...store.sessions, find: async () => bobs } },
      now: host.clock.now,
      logger: host.logs,
    })
    expect(await codeOf(guards.verifyToken(bob.token))).toBe('in')
    expect(await codeOf(guards.verifyToken(ada.token))).toBe('INVALID_TOKEN')
  })

  test('has both with jwksUri and without a store; 503 if the keys cannot be fetched', async () => {
    const key = makeKey('one', 'ES256')
    const now = new Date('2026-03-01T12:00:00.000Z')
    const answer = vi.fn(async () => ({ status: 200, headers: {}, body: JSON.stringify({ keys: [publicJwk(key)] }) }))
    const api = (httpClient: typeof answer) =>
      createGuards({
        settings: { jwksUri: 'https://id.example.test/auth/.well-known/jwks.json' },
        httpClient,
        now: () => now,
        logger: { info() {}, warn() {}, error() {} },
      })
    const token = tokenUnder(key, claimsAt(now, { sid: 's-1' }))
    const guards = api(answer)
    expect(await guards.verifyToken(token)).toMatchObject({ sessionId: 's-1', userId: claimsAt(now).sub })
    expect(await guards.verify({ headers: { authorization: `Bearer ${token}` } })).toMatchObject({ claims: { email: 'ana@example.test' } })
    expect(await codeOf(guards.verifyToken(tokenUnder(key, claimsAt(now, { exp: now.getTime() / 1000 }))))).toBe('TOKEN_EXPIRED')
    expect(await codeOf(guards.verifyToken(`${token}x`))).toBe('INVALID_TOKEN')
    expect(answer).toHaveBeenCalledTimes(1)
    const down = api(vi.fn(() => Promise.reject(new Error('no network'))))
    expect(await codeOf(down.verifyToken(token))).toBe('SERVICE_UNAVAILABLE')
  })
})

test('what is no object with headers is a fault of the host: a TypeError that says what is needed', async () => {
  const host = await start(wide)
  for (const given of [undefined, null, {}, 'authorization', { headers: 'authorization: Bearer x' }])
    await expect(host.auth.guards.verify(given as never)).rejects.toThrow(/^guards\.verify\(\) needs the request of an upgrade/)
})

test('a refusal is a line in the log with its reason and no value of the request, like that of a guard', async () => {
  const host = await start(wide)
  await codeOf(host.auth.guards.verify({ headers: { authorization: 'Bearer canary' } }))
  await codeOf(host.auth.guards.verifyToken({ canary: true }))
  const lines = host.logs.entries.filter(({ message }) => message.startsWith('doorward: a guard refused a request'))
  expect(lines.map(({ fields }) => fields)).toEqual([
    { code: 'INVALID_TOKEN', reason: 'no_jwt' },
    { code: 'INVALID_TOKEN', reason: 'no_access_token' },
  ])
  expect(JSON.stringify(lines)).not.toContain('canary')
})
