import jwt from 'jsonwebtoken'
import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { loginAs, openSessionAs } from '../../src/testing'
import { ask, continueAt, signedInJar, site, visit, withPages } from '../guards/page-visits'
import { type LocalHost, type LocalMember, onLocal, password, post, signedIn } from '../local/people'
import { setCookieOf } from '../support/app'
import { withChangedEnd } from '../support/changed-text'
import { type CookieJar, cookieJar } from '../support/cookie-jar'
import { databases } from '../support/databases'
import { recordQueries } from '../support/record-queries'
import { sendRaw } from '../support/send-raw'

const day = 86_400
const toOrders = '?return_to=%2Forders'
const signIn = `/login${toOrders}`

/** `/continue` with exactly this refresh cookie. */
async function goOn(host: LocalHost, refreshToken: string | null, headers: Record<string, string> = {}, query = toOrders) {
  const cookie = refreshToken === null ? [] : [`refresh_token=${refreshToken}`]
  const all = { ...headers, Cookie: [...cookie, ...(headers['Cookie'] ? [headers['Cookie']] : [])].join('; ') }
  return sendRaw(host.app, { method: 'GET', path: `${continueAt.cookie}${query}`, headers: { Host: site, ...all } })
}

const accessOf = (answer: { headers: object }) =>
  jwt.decode(String(setCookieOf(answer as never, 'access_token')?.value)) as jwt.JwtPayload | null

const rowOf = async ({ knex }: LocalHost, userId: string) =>
  knex('auth_sessions').where({ user_id: userId }).orderBy('created_at', 'desc').first()

const isAlive = async (host: LocalHost, refreshToken: string) => {
  const answer = await post(host, '/refresh', {}, { Cookie: `refresh_token=${refreshToken}` })
  return answer.status === 200
}

describe.each(await databases())('GET {prefix}/continue on $name', (database) => {
  const { start } = onLocal(database)

  async function ana(settings: object = {}, options: object = {}): Promise<{ host: LocalHost; person: LocalMember }> {
    const given = withPages(settings)
    const host = await start({ ...given, options: { ...given.options, ...options } })
    return { host, person: await signedIn(host) }
  }

  test('15.7 takes the living refresh cookie, sets a new access cookie and returns; the session and its token stay as they are', async () => {
    const { host, person } = await ana()
    const before = await rowOf(host, person.userId)
    for (const method of ['GET', 'HEAD'] as const) {
      const answer = await sendRaw(host.app, {
        method,
        path: `${continueAt.cookie}?return_to=%2Forders%3Fa%3D1%26b`,
        headers: { Cookie: `refresh_token=${person.refreshToken}` },
      })
      expect([answer.status, answer.headers.location, answer.headers['cache-control'], answer.text]).toEqual([
        302,
        '/orders?a=1&b',
        'no-store',
        '',
      ])
      expect(answer.headers['referrer-policy']).toBe('no-referrer')
      expect(setCookieOf(answer as never, 'refresh_token')).toBeNull()
      const attributes = setCookieOf(answer as never, 'access_token')?.attributes
      expect(attributes).toMatch(/^Max-Age=900; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Lax$/)
      expect(accessOf(answer)).toMatchObject({ sub: person.userId, sid: before.id, amr: ['pwd'] })
    }
    expect(await rowOf(host, person.userId)).toEqual(before)
    expect(await isAlive(host, person.refreshToken)).toBe(true)
  })

  test('X11: two tabs that are restored at once both come through, and no session ends', async () => {
    const { host, person } = await ana()
    host.clock.advance(3_600)
    const answers = await Promise.all(Array.from({ length: 4 }, () => goOn(host, person.refreshToken)))
    expect(answers.map(({ headers }) => headers.location)).toEqual(Array(4).fill('/orders'))
    expect((await rowOf(host, person.userId)).revoked_at).toBeNull()
    expect(await isAlive(host, person.refreshToken)).toBe(true)
  })

  test('X11: images on a sibling subdomain are refused, end nothing, and use up no rate limit', async () => {
    const { host, person } = await ana({}, { throttle: { routes: { attempts: 1, windowSeconds: 60 } } })
    for (const from of ['same-site', 'cross-site', 'none'])
      for (const mode of ['no-cors', 'cors', 'websocket']) {
        const { status, body, headers } = await goOn(host, person.refreshToken, { 'Sec-Fetch-Mode': mode, 'Sec-Fetch-Site': from })
        expect([status, body['code'], body['details'], headers['set-cookie']]).toEqual([
          403,
          'CSRF_VALIDATION_FAILED',
          { reason: 'site' },
          undefined,
        ])
      }
    const frame = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'cross-site' }
    for (const dest of ['iframe', 'frame', 'object', 'embed'])
      expect((await goOn(host, person.refreshToken, { ...frame, 'Sec-Fetch-Dest': dest })).body['code']).toBe('CSRF_VALIDATION_FAILED')
    // A person who follows a link of another site, and a script of our own page.
    expect((await goOn(host, person.refreshToken, { ...frame, 'Sec-Fetch-Dest': 'document' })).status).toBe(302)
    const limited = await goOn(host, person.refreshToken, { 'Sec-Fetch-Mode': 'cors', 'Sec-Fetch-Site': 'same-origin' })
    expect([limited.status, limited.body['code']]).toEqual([429, 'TOO_MANY_REQUESTS'])
    expect(await isAlive(host, person.refreshToken)).toBe(true)
  })

  test('X11: a frame of another site is let through where cookies are meant for such frames, and one of a sibling always', async () => {
    const embedded = await ana({ cookieSamesite: 'none', cookieSecure: true })
    const frame = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'iframe' }
    expect((await goOn(embedded.host, embedded.person.refreshToken, { ...frame, 'Sec-Fetch-Site': 'cross-site' })).status).toBe(302)
    const { host, person } = await ana()
    expect((await goOn(host, person.refreshToken, { ...frame, 'Sec-Fetch-Site': 'same-site' })).status).toBe(302)
  })

  test('X11: a refresh that ends while the host is asked for its claims keeps its cookie: the old one is not set again', async () => {
    let meanwhile = async () => {}
    const claims = async () => {
      await meanwhile()
      return {}
    }
    const { host, person } = await ana({}, { accessTokenClaims: claims })
    host.clock.advance(3_600)
    meanwhile = async () => {
      meanwhile = async () => {}
      expect(await isAlive(host, person.refreshToken)).toBe(true)
    }
    const answer = await goOn(host, person.refreshToken)
    expect([answer.headers.location, accessOf(answer)?.sub]).toEqual(['/orders', person.userId])
    expect(setCookieOf(answer as never, 'refresh_token')).toBeNull()
  })

  test('X11: a visit opens no grace window again: a used token ends the session, and gets no living one', async () => {
    const { host, person } = await ana({ refreshReuseGraceSeconds: 10 })
    const next = setCookieOf(await post(host, '/refresh', {}, { Cookie: `refresh_token=${person.refreshToken}` }), 'refresh_token')
    host.clock.advance(3_600)
    expect((await goOn(host, String(next?.value))).headers.location).toBe('/orders')
    expect(await isAlive(host, person.refreshToken)).toBe(false)
    expect((await rowOf(host, person.userId)).revoked_at).not.toBeNull()
  })

  test('X11: an app of pages alone, used every day, stays signed in past the idle end, up to the end of the session', async () => {
    const { host, person } = await ana({ refreshTokenTtlSeconds: 7 * day, refreshFamilyTtlSeconds: 10 * day })
    const left: unknown[] = []
    for (let at = 1; at <= 10; at += 1) {
      host.clock.advance(day)
      const answer = await goOn(host, person.refreshToken)
      const cookie = setCookieOf(answer as never, 'refresh_token')
      left.push(
        answer.headers.location === '/orders' && cookie?.value === person.refreshToken
          ? /Max-Age=(\d+)/.exec(cookie.attributes)?.[1]
          : null,
      )
    }
    expect(left).toEqual([7, 7, 7, 6, 5, 4, 3, 2, 1].map((days) => String(days * day)).concat(null as never))
  })

  test('14.5 the use of the session is written at most once a minute, and nothing else of it', async () => {
    const { host, person } = await ana()
    const before = await rowOf(host, person.userId)
    host.clock.advance(59)
    const queries = recordQueries(host.knex)
    await goOn(host, person.refreshToken)
    expect(queries.stop().map((sql) => sql.split(' ')[0]?.toLowerCase())).toEqual(['select'])
    expect(await rowOf(host, person.userId)).toEqual(before)
    host.clock.advance(1)
    await goOn(host, person.refreshToken)
    const { last_seen_at, expires_at, ...rest } = await rowOf(host, person.userId)
    expect({ ...before, last_seen_at, expires_at }).toEqual({ ...rest, last_seen_at, expires_at })
    expect([last_seen_at, expires_at]).not.toEqual([before.last_seen_at, before.expires_at])
  })

  test('15.7 without one that works it goes on to the sign-in page, and sets nothing', async () => {
    const { host, person } = await ana()
    const refused = async (name: string, token: string | null) => {
      const { status, headers } = await goOn(host, token)
      expect([name, status, headers.location, headers['set-cookie'], headers['cache-control']]).toEqual([
        name,
        302,
        signIn,
        undefined,
        'no-store',
      ])
    }
    await refused('none', null)
    await refused('junk', 'x')
    await refused('an access token', person.token)
    const used = person.refreshToken
    await post(host, '/refresh', {}, { Cookie: `refresh_token=${used}` })
    await refused('one that was used', used)
    expect((await rowOf(host, person.userId)).revoked_at, 'showing it here ends nothing').toBeNull()

    const [ended, inactive, gone, expired] = [await signedIn(host), await signedIn(host), await signedIn(host), await signedIn(host)]
    await host.auth.service.logOut(ended.refreshToken)
    await host.knex('auth_users').where({ id: inactive.userId }).update({ is_active: false })
    await host.knex('auth_users').where({ id: gone.userId }).delete()
    await refused('logged out', ended.refreshToken)
    await refused('inactive', inactive.refreshToken)
    await refused('gone', gone.refreshToken)
    host.clock.advance(7 * day)
    await refused('expired', expired.refreshToken)
  })

  test('X10: a session cookie is no refresh cookie, and a refresh token no session cookie', async () => {
    const { host, person } = await ana()
    const session = await openSessionAs(host.auth, { id: person.userId })
    const value = session.cookies.cookie.split('=')[1] ?? ''
    expect((await goOn(host, value)).headers.location).toBe(signIn)
    expect((await goOn(host, null, { Cookie: `auth_session=${person.refreshToken}` })).headers.location).toBe(signIn)
    expect((await goOn(host, null, { Cookie: `auth_session=${value}` })).headers.location).toBe(signIn)
  })

  test('X12: the new token is as fresh as the session was, and who holds an old refresh cookie gains nothing by the owner’s confirmation', async () => {
    const { host, person } = await ana()
    const began = accessOf(await goOn(host, person.refreshToken))?.['auth_time']
    host.clock.advance(1_800)
    const later = accessOf(await goOn(host, person.refreshToken))
    expect([later?.['auth_time'], later?.iat]).toEqual([began, Number(began) + 1_800])
    const stale = { Cookie: `access_token=${setCookieOf((await goOn(host, person.refreshToken)) as never, 'access_token')?.value}` }
    expect((await post(host, '/password/first', { new_password: 'x' }, stale)).body.code).toBe('REAUTHENTICATION_REQUIRED')

    const owner = `access_token=${later && setCookieOf((await goOn(host, person.refreshToken)) as never, 'access_token')?.value}; refresh_token=${person.refreshToken}`
    expect((await post(host, '/reauthenticate', { password }, { Cookie: owner })).status).toBe(200)
    expect((await goOn(host, person.refreshToken)).headers.location).toBe(signIn)
  })

  test('X24: who said `remember: false` gets no cookie here that outlives the browser, after any time', async () => {
    const { host, person } = await ana()
    const login = await post(host, '/login', { email: person.email, password, remember: false })
    const forgetful = setCookieOf(login, 'refresh_token')?.value ?? ''
    for (const seconds of [1, 3_600, 5 * day]) {
      host.clock.advance(seconds)
      const answer = await goOn(host, forgetful)
      const set = ['access_token', ...(seconds === 1 ? [] : ['refresh_token'])].map(
        (name) => setCookieOf(answer as never, name)?.attributes,
      )
      expect(set.every((attributes) => /^Path=\/(auth)?; HttpOnly; SameSite=Lax$/.test(attributes ?? ''))).toBe(true)
    }
    expect(setCookieOf((await goOn(host, person.refreshToken)) as never, 'refresh_token')?.attributes).toMatch(/^Max-Age=/)
  })

  test('15.7 when it comes again within 10 s for the same page, it goes on to the sign-in page; other pages, and later, it goes on', async () => {
    const { host, person } = await ana()
    const jar = cookieJar()
    jar.take({ 'set-cookie': [`refresh_token=${person.refreshToken}; Path=/auth`] }, { host: site, path: '/auth' })
    const next = async (page: string) =>
      (await ask(host, jar, { path: `${continueAt.cookie}?return_to=${encodeURIComponent(page)}` })).headers.location
    expect([await next('/a'), await next('/b'), await next('/a?x'), await next('/a'), await next('/b')]).toEqual([
      '/a',
      '/b',
      '/a?x',
      '/login?return_to=%2Fa',
      '/login?return_to=%2Fb',
    ])
    host.clock.advance(9)
    expect(await next('/a')).toBe('/login?return_to=%2Fa')
    host.clock.advance(1)
    expect([await next('/a'), await next('/a')]).toEqual(['/a', '/login?return_to=%2Fa'])
  })

  test('24.8 the marker is a cookie that proves something: HttpOnly, Lax, under a MAC, __Host- where cookies are Secure, of this host alone', async () => {
    const plain = await ana({ cookieDomain: 'example.test' })
    const attributes = async (host: LocalHost, person: LocalMember, name: string) =>
      setCookieOf((await goOn(host, person.refreshToken)) as never, name)?.attributes.replace(/Expires=[^;]+; /, '')
    expect(await attributes(plain.host, plain.person, 'auth_continue')).toBe('Max-Age=10; Path=/auth; HttpOnly; SameSite=Lax')
    const secure = await ana({ cookieDomain: 'example.test', cookieSecure: true })
    expect(await attributes(secure.host, secure.person, '__Host-auth_continue')).toBe('Max-Age=10; Path=/; HttpOnly; Secure; SameSite=Lax')

    const { host, person } = plain
    const mark = setCookieOf((await goOn(host, person.refreshToken)) as never, 'auth_continue')?.value ?? ''
    expect((await goOn(host, person.refreshToken, { Cookie: `auth_continue=${mark}` })).headers.location).toBe(signIn)
    const forged = [
      withChangedEnd(mark),
      mark.replace(/\.(\d+)\./, '.9999999999.'),
      'x',
      '..',
      Buffer.from('[["a",9e9]]').toString('base64url'),
    ]
    for (const value of forged)
      expect((await goOn(host, person.refreshToken, { Cookie: `auth_continue=${value}` })).headers.location).toBe('/orders')
  })

  test('15.2 a return_to that is none of ours is 422, never a redirect; so are two, and none', async () => {
    const { host, person } = await ana({ publicUrl: 'https://app.example.test', trustedOrigins: ['https://shop.example.test'] })
    const bad = [
      'https://elsewhere.example/',
      '//elsewhere.example',
      '/\\elsewhere.example',
      '/%2felsewhere.example',
      '/\t/elsewhere.example',
      '/.//elsewhere.example',
      'javascript:alert(1)',
      'https:elsewhere.example',
      'https://app.example.test@elsewhere.example/',
      'https://app.example.test.elsewhere.example/',
      'orders',
      `/${'x'.repeat(1_024)}`,
      '',
    ].map((value) => `?return_to=${encodeURIComponent(value)}`)
    for (const query of [...bad, '', '?return_to', '?return_to=%2Fa&return_to=%2Fb', '?return_to[]=%2Fa']) {
      const { status, body, headers } = await goOn(host, person.refreshToken, {}, query)
      expect([query, status, body['code'], headers.location, headers['set-cookie']]).toEqual([
        query,
        422,
        'VALIDATION_ERROR',
        undefined,
        undefined,
      ])
    }
    const trusted = '?return_to=https%3A%2F%2Fshop.example.test'
    expect((await goOn(host, person.refreshToken, {}, trusted)).headers.location).toBe('https://shop.example.test/')
    expect((await goOn(host, null, {}, trusted)).headers.location).toBe('/login?return_to=https%3A%2F%2Fshop.example.test')
  })

  test('the host is asked for its claims as at a refresh; where it fails, 503 and no cookie', async () => {
    let roles: unknown = ['reader']
    const { host, person } = await ana({}, { accessTokenClaims: () => ({ roles: roles as string[] }) })
    roles = ['editor']
    expect(accessOf(await goOn(host, person.refreshToken))?.['roles']).toEqual(['editor'])
    roles = new Date()
    const { status, body, headers } = await goOn(host, person.refreshToken)
    expect([status, body['code'], headers['set-cookie']]).toEqual([503, 'SERVICE_UNAVAILABLE', undefined])
  })

  test('login CSRF: it opens no session, and a cookie of another account beside the person’s own is none', async () => {
    const { host, person } = await ana()
    const attacker = await signedIn(host)
    const jar = await signedInJar(host, person.email)
    jar.plant({ name: 'refresh_token', value: attacker.refreshToken, domain: 'example.test', path: '/auth/continue' })
    const count = async () => Number((await host.knex('auth_sessions').count({ n: '*' }))[0]?.['n'])
    const before = await count()
    host.clock.advance(901)
    const { trail } = await visit(host, jar, '/orders')
    expect(trail.at(-1)).toBe(signIn)
    expect(await count()).toBe(before)
    expect(jar.names(), 'the planted one is gone, so that the next login counts').not.toContain('refresh_token')
  })

  describe('X21: a sibling subdomain plants a second access_token below the page', () => {
    const planted = { name: 'access_token', value: 'x', domain: 'example.test', path: '/orders' }

    test('one that is not ours counts for nothing, and the page shows itself (25.7.8)', async () => {
      const { host, person } = await ana()
      const jar = await signedInJar(host, person.email)
      jar.plant(planted)
      const { trail, status, body } = await visit(host, jar, '/orders')
      expect([trail, status, body['by']]).toEqual([['/orders'], 200, person.userId])
    })

    test('of one that is ours, one round heals it: the planted cookie is gone, and the page shows itself', async () => {
      const { host, person } = await ana()
      const jar = await signedInJar(host, person.email)
      jar.plant({ ...planted, value: (await signedIn(host)).token })
      const { trail, status, body } = await visit(host, jar, '/orders')
      expect(trail).toEqual(['/orders', `${continueAt.cookie}${toOrders}`, '/orders'])
      expect([status, body['by']]).toEqual([200, person.userId])
    })

    test('where the second cookie comes back at once, the way ends at the sign-in page after one round', async () => {
      const { host, person } = await ana()
      const ofAttacker = { ...planted, value: (await signedIn(host)).token }
      const healthy = await signedInJar(host, person.email)
      const jar: CookieJar = {
        ...healthy,
        take(headers, asked) {
          healthy.take(headers, asked)
          healthy.plant(ofAttacker)
        },
      }
      jar.plant(ofAttacker)
      const { trail } = await visit(host, jar, '/orders')
      expect(trail).toEqual(['/orders', `${continueAt.cookie}${toOrders}`, '/orders', `${continueAt.cookie}${toOrders}`, signIn])
    })

    test('two pages that lead to each other end there too', async () => {
      const { host, person } = await ana()
      const jar = await signedInJar(host, person.email)
      const pages = ['/orders/1', '/orders/2', '/orders/1', '/orders/2']
      const stops = []
      for (const page of pages)
        stops.push((await ask(host, jar, { path: `${continueAt.cookie}?return_to=${encodeURIComponent(page)}` })).headers.location)
      expect(stops).toEqual(['/orders/1', '/orders/2', '/login?return_to=%2Forders%2F1', '/login?return_to=%2Forders%2F2'])
    })
  })
})

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

describe('GET {prefix}/continue', () => {
  const { start, opened } = onLocal(sqlite)

  test('in delivery both it is below /cookie, where browsers send the refresh cookie; in bearer, and without loginUrl, there is none', async () => {
    const at = async (settings: object, path: string) =>
      (await ask(await start(withBare(settings)), cookieJar(), { path: `${path}${toOrders}` })).status
    expect(await at({ tokenDelivery: 'both' }, '/auth/cookie/continue')).toBe(302)
    expect(await at({ tokenDelivery: 'both' }, '/auth/continue')).toBe(404)
    expect(await at({ tokenDelivery: 'cookie' }, '/auth/cookie/continue')).toBe(404)
    expect(await at({ tokenDelivery: 'bearer' }, '/auth/continue')).toBe(404)
    expect(await at({ tokenDelivery: 'cookie', loginUrl: null }, '/auth/continue')).toBe(404)
  })

  test('another method is 405', async () => {
    const host = await start(withPages())
    const { status, headers } = await ask(host, cookieJar(), { method: 'POST', path: `/auth/continue${toOrders}` })
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD'])
  })

  test('with stateless refresh tokens it works as a refresh does, and a token that is trusted no more leads to the sign-in page', async () => {
    const given = withPages()
    const store = createKnexStore({ knex: opened().knex, sessions: false })
    const host = await start({ ...given, options: { ...given.options, store } })
    const person = await signedIn(host)
    host.clock.advance(901)
    const answer = await goOn(host, person.refreshToken)
    expect([answer.headers.location, accessOf(answer)?.sub]).toEqual(['/orders', person.userId])
    expect(setCookieOf(answer as never, 'refresh_token')?.attributes).toMatch(/Max-Age=604800/)
    const other = await loginAs(host.auth, { id: person.userId })
    await host
      .knex('auth_users')
      .where({ id: person.userId })
      .update({ hashed_password: await host.hasher.hash('another one, much longer') })
    expect((await goOn(host, other.refreshToken)).headers.location).toBe(signIn)
    expect((await goOn(host, 'x')).headers.location).toBe(signIn)
  })
})

/** Without pages behind the guard, which no delivery but those with cookies can have. */
function withBare(settings: object) {
  const { host: _pages, ...given } = withPages(settings as never)
  return given
}
