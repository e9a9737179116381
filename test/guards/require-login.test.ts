import express, { type Express } from 'express'
import { describe, expect, test } from 'vitest'
import { ConfigurationError, createGuards, createKnexStore } from '../../src'
import { newAddress, onLocal, password, signedIn } from '../local/people'
import { addUser } from '../social/accounts-at-hand'
import { baseUrl, type Mounted, testSecret } from '../support/app'
import { cookieJar } from '../support/cookie-jar'
import { databases } from '../support/databases'
import { logTap } from '../support/log-tap'
import { ask, continueAt, html, signedInJar, site, visit, withPages } from './page-visits'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onLocal(sqlite)

describe.each(['cookie', 'both'] as const)('requireLogin() in delivery %s', (tokenDelivery) => {
  const base = tokenDelivery === 'both' ? '/cookie' : ''
  const first = `${continueAt[tokenDelivery]}?return_to=`

  test('15.7 a page without a login is a redirect by way of /continue to the sign-in page, with return_to, and no cache keeps it', async () => {
    const host = await start(withPages({ tokenDelivery }))
    for (const method of ['GET', 'HEAD']) {
      const answer = await ask(host, cookieJar(), { method, path: '/orders?page=2&x=%2F' })
      expect([answer.status, answer.headers.location, answer.headers['cache-control'], answer.text]).toEqual([
        302,
        `${first}%2Forders%3Fpage%3D2%26x%3D%252F`,
        'no-store',
        '',
      ])
      expect(answer.headers['www-authenticate']).toBeUndefined()
    }
    const { trail, text, headers } = await visit(host, cookieJar(), '/orders?page=2')
    expect(trail.slice(1)).toEqual([`${first}%2Forders%3Fpage%3D2`, '/login?return_to=%2Forders%3Fpage%3D2'])
    expect([text, headers['set-cookie']]).toEqual(['sign in', undefined])
  })

  test('15.7 anything that is no page gets the envelope: another Accept, none, another method', async () => {
    const host = await start(withPages({ tokenDelivery }))
    const others = [
      { headers: { Accept: 'application/json' } },
      { headers: { Accept: '*/*' } },
      { headers: { Accept: '' } },
      { method: 'POST' },
      { method: 'PUT' },
      { method: 'DELETE' },
    ]
    for (const other of others) {
      const { status, body, headers } = await ask(host, cookieJar(), { path: '/orders', ...other })
      expect([status, body['code'], headers.location, headers['www-authenticate']]).toEqual([401, 'UNAUTHORIZED', undefined, 'Bearer'])
    }
  })

  test('15.7 a valid login passes, and the handler knows whose it is; what is no valid one is sent on', async () => {
    const host = await start(withPages({ tokenDelivery }))
    const ana = await signedIn(host)
    const jar = await signedInJar(host, ana.email, base)
    const passed = await ask(host, jar, { path: '/orders/7' })
    expect([passed.status, passed.body]).toEqual([200, { seen: '/orders/7', by: ana.userId }])
    expect((await ask(host, jar, { method: 'POST', path: '/orders' })).status).toBe(200)
    const bearer = { Authorization: `Bearer ${ana.token}` }
    expect((await ask(host, cookieJar(), { path: '/orders', headers: bearer })).body['by']).toBe(ana.userId)

    for (const headers of [{ Cookie: 'access_token=x' }, { Cookie: `access_token=${ana.refreshToken}` }, { Authorization: 'Bearer x' }])
      expect((await ask(host, cookieJar(), { path: '/orders', headers })).headers.location).toBe(`${first}%2Forders`)
    host.clock.advance(901)
    expect((await ask(host, cookieJar(), { path: '/orders', headers: bearer })).headers.location).toBe(`${first}%2Forders`)
  })

  test('15.7 nobody signs in every fifteen minutes: an old access cookie is renewed on the way, and the page shows itself', async () => {
    const host = await start(withPages({ tokenDelivery }))
    const ana = await signedIn(host)
    const jar = await signedInJar(host, ana.email, base)
    for (let quarter = 1; quarter <= 3; quarter += 1) {
      host.clock.advance(901)
      const { trail, status, body } = await visit(host, jar, '/orders?page=2')
      expect(trail).toEqual(['/orders?page=2', `${first}%2Forders%3Fpage%3D2`, '/orders?page=2'])
      expect([status, body['by']]).toEqual([200, ana.userId])
    }
  })
})

describe('requireLogin() in delivery session', () => {
  const toSignIn = '/login?return_to=%2Forders%3Fpage%3D2'

  test('15.7 a page without a login goes straight to the sign-in page, and there is no /continue', async () => {
    const host = await start(withPages({ tokenDelivery: 'session' }))
    for (const method of ['GET', 'HEAD']) {
      const { status, headers, text } = await ask(host, cookieJar(), { method, path: '/orders?page=2' })
      expect([status, headers.location, headers['cache-control'], text]).toEqual([302, toSignIn, 'no-store', ''])
    }
    expect((await ask(host, cookieJar(), { headers: { Accept: '*/*' }, path: '/orders' })).body['code']).toBe('UNAUTHORIZED')
    for (const path of Object.values(continueAt)) expect((await ask(host, cookieJar(), { path: `${path}?return_to=%2F` })).status).toBe(404)
  })

  test('15.7 a living session passes for as long as it is used; one that has ended is sent to sign in, and its cookie is cleared', async () => {
    const host = await start(withPages({ tokenDelivery: 'session', sessionTtlSeconds: 3_600 }))
    const { email, id } = await addUser(host.knex, { email: newAddress(), hashedPassword: await host.hasher.hash(password) })
    const jar = await signedInJar(host, email)
    for (let visits = 1; visits <= 3; visits += 1) {
      host.clock.advance(3_000)
      expect((await visit(host, jar, '/orders?page=2')).body).toEqual({ seen: '/orders?page=2', by: id })
    }
    await host.auth.service.revokeSessions(id)
    expect((await visit(host, jar, '/orders?page=2')).trail).toEqual(['/orders?page=2', toSignIn])
    expect(jar.names()).not.toContain('auth_session')
  })

  test('15.7 a session of an inactive account is no valid login', async () => {
    const host = await start(withPages({ tokenDelivery: 'session' }))
    const { email, id } = await addUser(host.knex, { email: newAddress(), hashedPassword: await host.hasher.hash(password) })
    const jar = await signedInJar(host, email)
    await host.knex('auth_users').where({ id }).update({ is_active: false })
    expect((await visit(host, jar, '/orders?page=2')).trail.at(-1)).toBe(toSignIn)
  })

  test('X21: a second session cookie below the page that is not ours does not count (25.7.8)', async () => {
    const host = await start(withPages({ tokenDelivery: 'session' }))
    const { email, id } = await addUser(host.knex, { email: newAddress(), hashedPassword: await host.hasher.hash(password) })
    const jar = await signedInJar(host, email)
    jar.plant({ name: 'auth_session', value: 'x', domain: 'example.test', path: '/orders' })
    expect((await visit(host, jar, '/orders?page=2')).body).toEqual({ seen: '/orders?page=2', by: id })
  })

  test('createGuards() needs no prefix there', async () => {
    const host = await start(withPages({ tokenDelivery: 'session' }))
    const settings = { tokenDelivery: 'session', loginUrl: '/login', cookieSecure: false } as const
    const guards = createGuards({ settings, store: createKnexStore({ knex: host.knex }), now: host.clock.now, logger: logTap() })
    host.app.get('/reports', guards.requireLogin(), (_req, res) => void res.send('reports'))
    const { email } = await addUser(host.knex, { email: newAddress(), hashedPassword: await host.hasher.hash(password) })
    expect((await visit(host, await signedInJar(host, email), '/reports')).text).toBe('reports')
    expect((await visit(host, cookieJar(), '/reports')).trail.at(-1)).toBe('/login?return_to=%2Freports')
  })
})

describe('where requireLogin() sends people', () => {
  const noOrigin = { publicUrl: '', oauthRedirectBaseUrl: '', oauthEnabled: false, localAccountsEnabled: false }
  const landing = async (settings: object, path = '/orders') => {
    const { trail } = await visit(await start(withPages(settings)), cookieJar(), path)
    return trail.at(-1)
  }

  test('15.7 return_to is added after the query that is there, and before a fragment', async () => {
    expect(await landing({ loginUrl: '/login?lang=pt-BR' })).toBe('/login?lang=pt-BR&return_to=%2Forders')
    expect(await landing({ loginUrl: '/#/login' })).toBe('/?return_to=%2Forders#/login')
  })

  test('15.7 it is a path where the sign-in page is of the public origin, else the absolute URL', async () => {
    expect(await landing({ loginUrl: `${baseUrl}/in`, publicUrl: baseUrl })).toBe(`${baseUrl}/in?return_to=%2Forders`)
    const back = encodeURIComponent(`${baseUrl}/orders?a=1`)
    expect(await landing({ loginUrl: 'https://id.example.test/in', publicUrl: baseUrl }, '/orders?a=1')).toBe(
      `https://id.example.test/in?return_to=${back}`,
    )
  })

  test('15.7 it is left out where it would be no valid one', async () => {
    expect(await landing({ loginUrl: 'https://id.example.test/in', ...noOrigin })).toBe('https://id.example.test/in')
    expect(await landing({}, `/orders?${'x'.repeat(1_020)}`)).toBe('/login')
    const host = await start({
      ...withPages(),
      host: (app, { guards }) => void app.use(guards.requireLogin(), (_req, res) => void res.send('x')),
    })
    for (const path of ['//elsewhere.example/x', '/\\elsewhere.example', '/%2felsewhere.example', '/a\\b', 'http://elsewhere.example/'])
      expect([path, (await ask(host, cookieJar(), { path })).headers.location]).toEqual([path, '/login'])
  })

  const everywhere = (settings: object) => ({
    ...withPages(settings),
    host: (app: Express, { guards }: Mounted['auth']) => void app.use(guards.requireLogin()),
  })

  test.each([
    ['/login?lang=pt-BR', {}],
    [`${baseUrl}/login`, { publicUrl: baseUrl }],
    [`https://${site}/login`, noOrigin],
  ])('the sign-in page %s itself behind the guard is not sent to itself: 401, and the log says it once', async (loginUrl, settings) => {
    const host = await start(everywhere({ loginUrl, ...settings }))
    const { trail, status, body } = await visit(host, cookieJar(), '/login?return_to=%2F')
    await visit(host, cookieJar(), '/login')
    expect([trail.length, status, body['code']]).toEqual([1, 401, 'UNAUTHORIZED'])
    expect(host.logs.entries.filter(({ message }) => /behind requireLogin\(\), so nobody can open it/.test(message)).length).toBe(1)
  })

  test('a page of the same path as a sign-in page elsewhere is a page as every other', async () => {
    for (const settings of [{ publicUrl: baseUrl }, noOrigin]) {
      const host = await start(everywhere({ loginUrl: 'https://id.example.test/login', ...settings }))
      expect((await ask(host, cookieJar(), { path: '/login' })).headers.location).toBe('/auth/continue?return_to=%2Flogin')
    }
  })
})

describe('requireLogin() is refused where it is made', () => {
  const made = (settings: object, mounted: Mounted, options: object = {}) => {
    const given = { tokenDelivery: 'cookie', loginUrl: '/login', jwtSecret: testSecret, ...settings }
    return () =>
      createGuards({
        settings: given,
        store: createKnexStore({ knex: mounted.knex }),
        logger: logTap(),
        ...options,
      } as never).requireLogin()
  }

  test('15.7 in delivery bearer, and without a sign-in page', async () => {
    const bearer = await start({ settings: { loginUrl: '/login' } })
    expect(() => bearer.auth.guards.requireLogin()).toThrow(ConfigurationError)
    expect(() => bearer.auth.guards.requireLogin()).toThrow(/set tokenDelivery \(AUTH_TOKEN_DELIVERY\) to 'cookie', 'both' or 'session'/)
    const pageless = await start({ settings: { tokenDelivery: 'cookie' } })
    expect(() => pageless.auth.guards.requireLogin()).toThrow(/needs a page where people sign in: set loginUrl \(AUTH_LOGIN_URL\)/)
    expect((await ask(pageless, cookieJar(), { path: '/auth/continue?return_to=%2F' })).status).toBe(404)
  })

  test('by createGuards() where it does not know the prefix of the router, or what is none', async () => {
    const host = await start()
    expect(made({}, host)).toThrow(/needs to know where the router is: pass its `prefix`, for example '\/auth', to createGuards\(\)/)
    expect(made({ tokenDelivery: 'bearer' }, host, { prefix: '/auth' })).toThrow(/AUTH_TOKEN_DELIVERY/)
    expect(made({ loginUrl: null }, host, { prefix: '/auth' })).toThrow(/AUTH_LOGIN_URL/)
    for (const prefix of ['auth', '/auth/', '//elsewhere.example', '/', '', 7, null])
      expect(made({}, host, { prefix })).toThrow(/prefix must be the full public path/)
  })

  test('a forgotten pair of parentheses says so', async () => {
    const { auth } = await start(withPages())
    const app = express()
    app.get('/', auth.guards.requireLogin as never, (_req, res) => void res.send('reached'))
    const { status, text } = await ask({ app }, cookieJar(), { path: '/' })
    expect([status, /requireLogin/.test(text)]).toEqual([500, true])
  })
})

test('createGuards() with the prefix sends people by way of the router of the same site', async () => {
  const host = await start(withPages())
  const guards = createGuards({
    settings: { tokenDelivery: 'cookie', loginUrl: '/login', jwtSecret: testSecret, cookieSecure: false },
    prefix: '/auth',
    now: host.clock.now,
    logger: logTap(),
  })
  host.app.get('/reports', guards.requireLogin(), (_req, res) => void res.send('reports'))
  const ana = await signedIn(host)
  const jar = await signedInJar(host, ana.email)
  host.clock.advance(901)
  const { trail, text } = await visit(host, jar, '/reports')
  expect([trail, text]).toEqual([['/reports', '/auth/continue?return_to=%2Freports', '/reports'], 'reports'])
  expect((await visit(host, cookieJar(), '/reports', { Accept: html })).trail.at(-1)).toBe('/login?return_to=%2Freports')
})
