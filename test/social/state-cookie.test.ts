import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { constantTimeEqual } from '../../src/core/opaque-token'
import { memoryCounters } from '../../src/rate-limits/memory-counters'
import type { CounterStore } from '../../src/rate-limits/rate-limit'
import { type Mounted, setCookieOf } from '../support/app'
import { databases } from '../support/databases'
import { answer } from '../support/fake-provider'
import { navigate } from '../support/navigate'
import {
  begin,
  callBack,
  cookieAttributes,
  cookiePair,
  type HttpResponse,
  isCleared,
  newPerson,
  onDatabase,
  providerCalls,
} from './redirect-steps'

// The state lives in cookies and counters, never in a row: one database is enough.
const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onDatabase(database, { memory: true })

function expectMismatch(response: HttpResponse): void {
  expect(response.status, response.text).toBe(401)
  expect(response.body).toEqual({ detail: expect.any(String), code: 'OAUTH_STATE_MISMATCH', details: {} })
  expect(isCleared(response)).toBe(true)
}

describe('the cookie of GET login', () => {
  test('R-023: it is HttpOnly, SameSite=Lax, under the prefix, Secure, and lives as long as the state', async () => {
    const host = await start({ prefix: '/api/v1/auth', settings: { cookieSecure: true, oauthStateTtlSeconds: 120 } })

    const { response } = await begin(host)

    const { expires, ...attributes } = cookieAttributes(response) ?? {}
    expect(attributes).toEqual({ 'max-age': '120', path: '/api/v1/auth', httponly: '', secure: '', samesite: 'Lax' })
    expect(Date.parse(String(expires))).toBeGreaterThan(Date.now())
  })

  test.each(['strict', 'none'] as const)('R-023: it stays SameSite=Lax where cookieSamesite is %s', async (cookieSamesite) => {
    const host = await start({ settings: { cookieSamesite, cookieSecure: true, tokenDelivery: 'cookie' } })

    const { response, query, cookie } = await begin(host, { profile: newPerson() })
    const called = await callBack(host, query, { cookie })

    expect(cookieAttributes(response)?.['samesite']).toBe('Lax')
    expect(cookieAttributes(called)?.['samesite']).toBe('Lax')
    expect(cookieAttributes(called, 'access_token')?.['samesite']?.toLowerCase()).toBe(cookieSamesite)
  })

  test('R-023: it is not Secure where cookieSecure is off, and has the configured name', async () => {
    const host = await start({ settings: { cookieSecure: false, oauthStateCookieName: 'my_state' } })
    const { response } = await begin(host)
    expect(cookieAttributes(response)).toBeNull()
    expect(cookieAttributes(response, 'my_state')).not.toHaveProperty('secure')
  })

  test('R-023: it belongs to this host alone, also where cookieDomain shares the other cookies', async () => {
    const host = await start({ settings: { cookieDomain: 'example.test', tokenDelivery: 'cookie' } })

    const { response, query, cookie } = await begin(host, { profile: newPerson() })
    const called = await callBack(host, query, { cookie })

    expect(cookieAttributes(response)).not.toHaveProperty('domain')
    expect(cookieAttributes(called)).not.toHaveProperty('domain')
    expect(cookieAttributes(called, 'access_token')?.['domain']).toBe('example.test')
  })

  test('R-023: a cleared cookie has the attributes it was set with, or the browser would keep it', async () => {
    const host = await start({ prefix: '/door', settings: { cookieSecure: true } })
    const { cookie } = await begin(host)

    const refused = await callBack(host, { state: 'another', code: 'any' }, { cookie })

    expectMismatch(refused)
    expect(cookieAttributes(refused)).toMatchObject({ path: '/door', httponly: '', secure: '', samesite: 'Lax' })
    expect(cookieAttributes(refused)).not.toHaveProperty('max-age')
  })

  test('it carries the provider key and the random value of the query, and neither the PKCE verifier nor the nonce', async () => {
    const host = await start()
    const { response, state, params, query, cookie } = await begin(host, { profile: newPerson() })
    await callBack(host, query, { cookie })

    const { value = '' } = setCookieOf(response, 'oauth_state') ?? {}
    expect(value).toContain('corp')
    expect(value).toContain(state)
    const verifier = host.provider.requestsTo('token')[0]?.form.get('code_verifier')
    for (const secret of [verifier, params.get('nonce'), params.get('code_challenge')]) expect(value).not.toContain(String(secret))
  })
})

describe('the state', () => {
  test('R-020: it is 256 random bits, new for every attempt', async () => {
    const host = await start({ options: { throttle: { routes: false } } })
    const server = createServer(host.app).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/auth/oauth/corp/login` // a TCP server's address
    const states = new Set<string | null>()
    for (let attempt = 0; attempt < 1000; attempt += 1) {
      const { headers } = await navigate(url)
      states.add(new URL(String(headers.get('location'))).searchParams.get('state'))
    }
    await new Promise((resolve) => server.close(resolve))
    expect(states.size).toBe(1000)
    for (const state of states) expect(state).toMatch(/^[\w-]{43}$/)
  })

  test.each<
    [string, (own: { state: string; cookie: string }, other: { state: string; cookie: string }) => { query: string; cookie: string | null }]
  >([
    ['no cookie', ({ state }) => ({ query: `code=c&state=${state}`, cookie: null })],
    ['no state', ({ cookie }) => ({ query: 'code=c', cookie })],
    ['an empty state', ({ cookie }) => ({ query: 'code=c&state=', cookie })],
    ["another browser's cookie", ({ state }, other) => ({ query: `code=c&state=${state}`, cookie: other.cookie })],
    ['the state twice', ({ state, cookie }) => ({ query: `code=c&state=${state}&state=${state}`, cookie })],
    ['the state in an array', ({ state, cookie }) => ({ query: `code=c&state[]=${state}`, cookie })],
    ['the state in an object', ({ state, cookie }) => ({ query: `code=c&state[a]=${state}`, cookie })],
    ['the state with something behind it', ({ state, cookie }) => ({ query: `code=c&state=${state}x`, cookie })],
    ['the state cut short', ({ state, cookie }) => ({ query: `code=c&state=${state.slice(0, -1)}`, cookie })],
    ['a state of 513 characters', ({ cookie }) => ({ query: `code=c&state=${'a'.repeat(513)}`, cookie })],
    ['the whole cookie as the state', ({ cookie }) => ({ query: `code=c&state=${cookie.split('=')[1]}`, cookie })],
    ['a cookie of which one character was changed', ({ state, cookie }) => ({ query: `code=c&state=${state}`, cookie: flip(cookie) })],
    [
      'a cookie without its seal',
      ({ state }) => ({ query: `code=c&state=${state}`, cookie: `oauth_state=login.corp.${state}.9999999999.` }),
    ],
    [
      'a cookie that cookie-parser reads as an object',
      ({ state }) => ({ query: `code=c&state=${state}`, cookie: `oauth_state=j:{"a":"${state}"}` }),
    ],
    ['a cookie of noise', ({ state }) => ({ query: `code=c&state=${state}`, cookie: 'oauth_state=%E0%A4%A~~~.....~%00' })],
  ])('R-020: %s is 401 OAUTH_STATE_MISMATCH without a call to the provider', async (_case, change) => {
    const host = await start()
    const own = await begin(host)
    const other = await begin(host)
    const { query, cookie } = change(own, other)

    expectMismatch(await callBack(host, query, { cookie }))
    expect(providerCalls(host)).toBe(0)
  })

  test('R-021: an empty cookie never equals an empty state', async () => {
    expect([constantTimeEqual('', ''), constantTimeEqual('', null), constantTimeEqual('a', 'a')]).toEqual([false, false, true])
    const host = await start()
    for (const query of ['code=c&state=', 'code=c', 'code=c&state=&state=', 'code=c&state=undefined', 'code=c&state=null']) {
      for (const cookie of [null, 'oauth_state=', 'oauth_state=""', 'oauth_state=~', 'oauth_state=.....', 'oauth_state=undefined']) {
        expectMismatch(await callBack(host, query, { cookie }))
      }
    }
    expect(providerCalls(host)).toBe(0)
  })

  test("R-020: a state minted for one provider is invalid at another's callback", async () => {
    const host = await start({ providers: { corp: {}, acme: {} } })
    const { query, cookie } = await begin(host, { key: 'corp', profile: newPerson() })

    expectMismatch(await callBack(host, query, { cookie, key: 'acme' }))
    expect(providerCalls(host)).toBe(0)
  })

  test('R-020: it expires by our own clock, whatever the browser sends again', async () => {
    const host = await start({ settings: { oauthStateTtlSeconds: 600 } })
    const [last, late] = [await begin(host, { profile: newPerson() }), await begin(host, { profile: newPerson() })]

    host.clock.advance(599)
    expect((await callBack(host, last.query, last)).status).toBe(200)
    host.clock.advance(1)
    expectMismatch(await callBack(host, late.query, late))
  })

  test('R-020: an attempt that waits in a re-set cookie is not given a new life', async () => {
    const host = await start({ settings: { oauthStateTtlSeconds: 600 } })
    const first = await begin(host, { profile: newPerson() })
    host.clock.advance(400)
    const second = await begin(host, { cookie: first.cookie, profile: newPerson() })
    host.clock.advance(201)

    expectMismatch(await callBack(host, first.query, second))
  })

  test('R-020: what another secret sealed says nothing here', async () => {
    const [one, two] = [await start(), await start({ settings: { jwtSecret: 'another secret of forty characters, or so' } })]
    const { query, cookie } = await begin(one)
    expectMismatch(await callBack(two, query, { cookie }))
  })

  test('R-023: a value sealed for another cookie name is refused', async () => {
    const [one, two] = [await start(), await start({ settings: { oauthStateCookieName: 'other_state' } })]
    const { query, cookie } = await begin(one)

    const response = await callBack(two, query, { cookie: cookie.replace('oauth_state', 'other_state') })

    expect(response.body.code).toBe('OAUTH_STATE_MISMATCH')
    expect(isCleared(response, 'other_state')).toBe(true)
  })
})

describe('single use', () => {
  test('R-022: after a success the cookie is cleared, and a kept cookie is refused', async () => {
    const host = await start()
    const { query, cookie } = await begin(host, { profile: newPerson() })

    const used = await callBack(host, query, { cookie })
    expect(used.status, used.text).toBe(200)
    expect(isCleared(used)).toBe(true)

    const calls = providerCalls(host)
    expectMismatch(await callBack(host, query, { cookie }))
    expectMismatch(await callBack(host, { ...query, code: host.provider.issueCode() }, { cookie }))
    expect(providerCalls(host)).toBe(calls)
  })

  test.each([
    ['a denial', 'error=access_denied'],
    ['a mismatch', 'code=c&state=another'],
  ])('R-022: %s clears the cookie of this browser, so that its attempts are over', async (_case, badQuery) => {
    const host = await start()
    const first = await begin(host, { profile: newPerson() })
    const second = await begin(host, { cookie: first.cookie, profile: newPerson() })

    const refused = await callBack(host, badQuery, second)
    expect(refused.status).toBe(401)
    expect(isCleared(refused)).toBe(true)

    const left = cookiePair(refused)
    expectMismatch(await callBack(host, first.query, { cookie: left }))
    expectMismatch(await callBack(host, second.query, { cookie: left }))
    expect(providerCalls(host)).toBe(0)
  })

  test('only a callback whose state matched marks it as used: denials, mismatches and logouts write nothing', async () => {
    const counters = memoryCounters()
    const stored: string[] = []
    const shared: CounterStore = {
      ...counters,
      increment(...given) {
        stored.push(given[0])
        return counters.increment(...given)
      },
    }
    const host = await start({ options: { throttle: { counters: shared, routes: false } } })
    const { query, cookie } = await begin(host, { profile: newPerson() })

    for (const bad of ['error=access_denied', 'code=c&state=another', 'code=c']) await callBack(host, bad, { cookie })
    const logout = await supertest(host.app).post('/auth/logout').set('Cookie', cookie).send({ refresh_token: 'x' })
    expect([logout.status, isCleared(logout)]).toEqual([204, true])
    expect(stored).toEqual([])

    expect((await callBack(host, query, { cookie })).status).toBe(200)
    expect(stored).toEqual([expect.stringMatching(/^oauth-state:[\w-]{43}$/)])
    expect(stored[0]).not.toContain(query['state'])
  })

  test.each<[string, (host: Mounted, query: Record<string, string>) => Record<string, string>, number]>([
    ['a callback without a code', (_host, { state = '' }) => ({ state }), 422],
    [
      'a refused exchange',
      (host, query) => {
        host.provider.on('token', answer(400, { error: 'invalid_grant' }))
        return query
      },
      502,
    ],
    [
      'a profile without an email',
      (host, query) => {
        host.provider.idToken = ({ email: _email, ...claims }) => claims
        host.provider.on('userinfo', answer(200, { sub: query['sub'] ?? 'subject-1' }))
        return query
      },
      422,
    ],
  ])('R-022: after %s its attempt is spent and the others live', async (_case, spoil, status) => {
    const host = await start()
    const other = await begin(host, { profile: newPerson() })
    const failing = await begin(host, { cookie: other.cookie })

    const query = spoil(host, failing.query)
    const failed = await callBack(host, query, failing)
    expect(failed.status, failed.text).toBe(status)
    const left = cookiePair(failed)
    expect(left).toBe(other.cookie)
    for (const endpoint of ['token', 'userinfo'] as const) host.provider.on(endpoint, null)
    host.provider.idToken = null

    expect((await callBack(host, other.query, { cookie: left })).status).toBe(200)
    expectMismatch(await callBack(host, failing.query, failing))
  })

  test('R-022: the cookie is cleared on a failure too, when no other attempt is left', async () => {
    const host = await start()
    const { query, cookie } = await begin(host)
    host.provider.on('token', answer(503, {}))
    const failed = await callBack(host, query, { cookie })
    expect(failed.status).toBe(502)
    expect(isCleared(failed)).toBe(true)
  })

  test('R-022: a state spent while the shared store was down stays spent when it is back', async () => {
    const inside = memoryCounters()
    let isDown = true
    const shared = {
      ...inside,
      increment: (...given: Parameters<typeof inside.increment>) =>
        isDown ? Promise.reject(new Error('down')) : inside.increment(...given),
    }
    const host = await start({ options: { throttle: { counters: shared } } })
    const { query, cookie } = await begin(host, { profile: newPerson() })
    expect((await callBack(host, query, { cookie })).status).toBe(200)
    isDown = false
    host.clock.advance(5)

    expectMismatch(await callBack(host, query, { cookie }))
  })

  test('R-022, C18: of twenty replays at once, one reaches the provider and the others are 401', async () => {
    const host = await start()
    const { query, cookie } = await begin(host, { profile: newPerson() })

    const responses = await Promise.all(Array.from({ length: 20 }, () => callBack(host, query, { cookie })))

    expect(responses.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(401)])
    expect(host.provider.requestsTo('token')).toHaveLength(1)
    for (const response of responses) if (response.status === 401) expect(response.body.code).toBe('OAUTH_STATE_MISMATCH')
  })

  test('R-022: processes that share a counter store share what is spent', async () => {
    const shared = memoryCounters()
    const [one, two] = [
      await start({ options: { throttle: { counters: shared } } }),
      await start({ options: { throttle: { counters: shared } } }),
    ]
    const { query, cookie } = await begin(one, { profile: newPerson() })

    expect((await callBack(one, query, { cookie })).status).toBe(200)
    expectMismatch(await callBack(two, query, { cookie }))
    expect(providerCalls(two)).toBe(0)
  })

  test('R-022: a shared counter store that is down does not make a state work twice', async () => {
    const down = () => Promise.reject(new Error('connection refused'))
    const counters: CounterStore = { increment: down, decrement: down, reset: down }
    const host = await start({ options: { throttle: { counters } } })
    const { query, cookie } = await begin(host, { profile: newPerson() })

    expect((await callBack(host, query, { cookie })).status).toBe(200)
    expectMismatch(await callBack(host, query, { cookie }))
  })
})

describe('tabs in parallel', () => {
  async function openTabs(host: Mounted, count: number) {
    const tabs = [await begin(host, { profile: newPerson() })]
    while (tabs.length < count) tabs.push(await begin(host, { cookie: tabs.at(-1)?.cookie ?? null, profile: newPerson() }))
    return { tabs, cookie: tabs.at(-1)?.cookie ?? '' }
  }

  test('C19: five stay valid, each finishes its own login, and one callback leaves the others', async () => {
    const host = await start()
    const { tabs, cookie } = await openTabs(host, 5)
    const order = [2, 0, 4, 1, 3]
    const subjects: unknown[] = []
    let jar = cookie
    for (const index of order) {
      const response = await callBack(host, tabs[index]?.query ?? '', { cookie: jar })
      expect(response.status, response.text).toBe(200)
      subjects.push(response.body.user_id)
      if (index === order.at(-1)) expect(isCleared(response)).toBe(true)
      else jar = cookiePair(response) ?? ''
    }
    expect(new Set(subjects).size).toBe(5)
  })

  test('C19: a sixth evicts the oldest', async () => {
    const host = await start()
    const { tabs, cookie } = await openTabs(host, 6)
    expect(cookie.split('~')).toHaveLength(5)

    const second = await callBack(host, tabs[1]?.query ?? '', { cookie })
    expect(second.status).toBe(200)
    const sixth = await callBack(host, tabs[5]?.query ?? '', { cookie: cookiePair(second) })
    expect(sixth.status).toBe(200)
    expectMismatch(await callBack(host, tabs[0]?.query ?? '', { cookie: cookiePair(sixth) }))
  })

  test('C19: the cookie of five tabs at five providers with the longest keys fits a browser', async () => {
    const keys = Array.from({ length: 5 }, (_, index) => `${index}${'k'.repeat(49)}`)
    const host = await start({ providers: Object.fromEntries(keys.map((key) => [key, {}])) })
    let cookie = ''
    for (const key of keys) ({ cookie } = await begin(host, { key, cookie, query: { lang: 'pt-BR' } }))
    expect(cookie.split('~')).toHaveLength(5)
    expect(Buffer.byteLength(cookie)).toBeLessThan(3000)
  })

  test('attempts at two providers live side by side', async () => {
    const host = await start({ providers: { corp: {}, acme: {} } })
    const corp = await begin(host, { key: 'corp', profile: newPerson() })
    const acme = await begin(host, { key: 'acme', cookie: corp.cookie, profile: newPerson() })

    const first = await callBack(host, corp.query, { key: 'corp', cookie: acme.cookie })
    expect(first.status).toBe(200)
    expect((await callBack(host, acme.query, { key: 'acme', cookie: cookiePair(first) })).status).toBe(200)
  })
})

describe('other methods', () => {
  test.each(['login', 'callback'])('HEAD on %s is 405 with Allow: GET, starts nothing and spends nothing', async (route) => {
    const host = await start()
    const { query, cookie } = await begin(host, { profile: newPerson() })

    const head = await supertest(host.app).head(`/auth/oauth/corp/${route}`).query(query).set('Cookie', cookie)

    expect(head.status).toBe(405)
    expect(head.headers['allow']).toBe('GET')
    expect(head.headers['set-cookie']).toBeUndefined()
    expect((await callBack(host, query, { cookie })).status).toBe(200)
  })

  test.each(['login', 'callback'])('R-030: POST, PUT and DELETE on %s are 405 METHOD_NOT_ALLOWED', async (route) => {
    const host = await start()
    const { query, cookie } = await begin(host)
    for (const method of ['post', 'put', 'delete'] as const) {
      const response = await supertest(host.app)[method](`/auth/oauth/corp/${route}`).query(query).set('Cookie', cookie).send(query)
      expect(response.status).toBe(405)
      expect(response.headers['allow']).toBe('GET')
      expect(response.body.code).toBe('METHOD_NOT_ALLOWED')
    }
    expect(providerCalls(host)).toBe(0)
  })
})

/** One character in the middle of the value becomes another of the same alphabet. */
function flip(cookie: string): string {
  const at = Math.floor(cookie.length / 2)
  return `${cookie.slice(0, at)}${cookie[at] === 'A' ? 'B' : 'A'}${cookie.slice(at + 1)}`
}
