import express from 'express'
import { describe, expect, test } from 'vitest'
import { createGuards, findAuth, getAuth, type HttpClient } from '../../src'
import { testClock } from '../support/clock'
import { logTap } from '../support/log-tap'
import { sendRaw } from '../support/send-raw'
import { claimsAt, makeKey, publicJwk, signedWith, type TestKey, tokenUnder } from '../support/signing-keys'

const one = makeKey('one', 'ES256')
const two = makeKey('two', 'RS256')
const jwksUri = 'https://id.example.test/auth/.well-known/jwks.json'

/** An API with nothing but the address of a key set, and what that address answers. */
function startApi(published: object[] = [publicJwk(one), publicJwk(two)], settings: object = {}, options: object = {}) {
  const clock = testClock()
  const set = { keys: published, fetches: 0, answer: null as null | HttpClient }
  const httpClient: HttpClient = async (url, request) => {
    set.fetches++
    expect(url).toBe(jwksUri)
    await new Promise((resolve) => setImmediate(resolve))
    return set.answer ? set.answer(url, request) : { status: 200, headers: {}, body: JSON.stringify({ keys: set.keys }) }
  }
  const guards = createGuards({ settings: { jwksUri, ...settings }, httpClient, now: clock.now, logger: logTap(), ...options })
  const app = express()
  let reached = 0
  app.get('/api', guards.requireAuth(), (req, res) => {
    reached++
    res.json({ sub: getAuth(req).sub })
  })
  app.get('/optional', guards.optionalAuth(), (req, res) => void res.json({ sub: findAuth(req)?.sub ?? null }))
  const get = (token: string, path = '/api') =>
    sendRaw(app, { method: 'GET', path, headers: token ? { Authorization: `Bearer ${token}` } : {} })
  const codeOf = async (token: string) => {
    const { status, body } = await get(token)
    return status === 200 ? 200 : body['code']
  }
  const lasting = (key: TestKey) => tokenUnder(key, claimsAt(clock.now(), { exp: clock.now().getTime() / 1000 + 86_400 }))
  const unknownKid = (kid: string) => signedWith(one, claimsAt(clock.now()), { alg: 'ES256', typ: 'JWT', kid })
  return { clock, set, get, codeOf, lasting, unknownKid, reached: () => reached }
}

describe('C21 the key set is fetched', () => {
  test('C21 once for any number of first requests on a cold cache, and not before the first', async () => {
    const api = startApi()
    expect(api.set.fetches).toBe(0)

    const answers = await Promise.all(Array.from({ length: 40 }, (_, index) => api.get(api.lasting(index % 2 ? one : two))))

    expect(answers.map(({ status }) => status)).toEqual(Array(40).fill(200))
    expect(api.set.fetches).toBe(1)
  })

  test('C21 at most once per 60 seconds for unknown kids, while known ones are served', async () => {
    const api = startApi()
    const valid = api.lasting(one)
    await api.get(valid)
    api.clock.advance(61)

    for (const fetches of [2, 3]) {
      const flood = await Promise.all(Array.from({ length: 30 }, (_, index) => api.codeOf(api.unknownKid(`random ${fetches} ${index}`))))
      const served = await Promise.all(Array.from({ length: 10 }, () => api.codeOf(valid)))

      expect([...new Set(flood)]).toEqual(['INVALID_TOKEN'])
      expect(served).toEqual(Array(10).fill(200))
      expect(api.set.fetches).toBe(fetches)
      api.clock.advance(59)
      await api.codeOf(api.unknownKid('again'))
      expect(api.set.fetches).toBe(fetches)
      api.clock.advance(1)
    }
  })

  test('a kid that is new is found at the first token under it, however short ago the set was read', async () => {
    const api = startApi([publicJwk(one)])
    await api.get(api.lasting(one))
    api.set.keys = [publicJwk(two), publicJwk(one)]

    expect(await api.codeOf(api.lasting(two))).toBe(200)
    expect(api.set.fetches).toBe(2)
  })

  test('never for what could not pass anyway, and never for an anonymous request', async () => {
    const api = startApi([publicJwk(one)], { algorithms: ['ES256'] })
    const secret = signedWith(one, claimsAt(api.clock.now()), { alg: 'HS256', typ: 'JWT' })

    expect(await api.codeOf(secret)).toBe('INVALID_TOKEN')
    expect(await api.codeOf(api.lasting(two))).toBe('INVALID_TOKEN') // RS256 is not in the list
    expect(await api.codeOf('x.y.z')).toBe('INVALID_TOKEN')
    expect((await api.get('', '/optional')).body).toEqual({ sub: null })
    expect(api.set.fetches).toBe(0)
  })
})

describe('a remembered token', () => {
  test('is believed for 300 seconds without a fetch, then the set is read again', async () => {
    const api = startApi()
    const token = api.lasting(one)
    await api.get(token)

    api.clock.advance(239)
    expect([await api.codeOf(token), api.set.fetches]).toEqual([200, 1])
    api.clock.advance(61)
    const answers = await Promise.all(Array.from({ length: 10 }, () => api.codeOf(token)))
    expect([answers, api.set.fetches]).toEqual([Array(10).fill(200), 2])
  })

  test('dies with its key: gone from the set, under other material, for another algorithm, or named twice', async () => {
    const changed: [string, object[]][] = [
      ['gone', [publicJwk(two)]],
      ['other material', [publicJwk({ ...makeKey('one', 'ES256') }), publicJwk(two)]],
      ['a key of another type', [publicJwk({ ...makeKey('one', 'RS256') }), publicJwk(two)]],
      ['not for signatures any more', [{ ...publicJwk(one), use: 'enc' }, publicJwk(two)]],
      ['two of one name', [publicJwk(one), publicJwk(makeKey('one', 'ES256')), publicJwk(two)]],
      ['the same key under another name', [publicJwk({ ...one, kid: 'renamed' }), publicJwk(two)]],
    ]
    for (const [what, keys] of changed) {
      const api = startApi()
      const [dying, staying] = [api.lasting(one), api.lasting(two)]
      expect([await api.codeOf(dying), await api.codeOf(staying)]).toEqual([200, 200])
      api.set.keys = keys
      expect(await api.codeOf(dying), what).toBe(200) // nobody knows yet
      api.clock.advance(300)

      expect(await api.codeOf(dying), what).toBe('INVALID_TOKEN')
      expect(await api.codeOf(staying), what).toBe(200)
    }
  })

  test('dies earlier when a new kid has made the set be read again', async () => {
    const api = startApi([publicJwk(one)])
    const token = api.lasting(one)
    await api.get(token)
    api.set.keys = [publicJwk(two)]
    api.clock.advance(60)

    expect(await api.codeOf(api.lasting(two))).toBe(200)
    expect(await api.codeOf(token)).toBe('INVALID_TOKEN')
  })
})

describe('one algorithm per key', () => {
  test('an RSA key that names none checks the first of the list that it can, and no other', async () => {
    const { alg: _, ...unnamed } = publicJwk(two) as { alg: string }
    const ps256 = (now: Date) => signedWith({ ...two, alg: 'PS256' }, claimsAt(now), { alg: 'PS256', typ: 'JWT', kid: 'two' })

    const api = startApi([unnamed])
    expect([await api.codeOf(api.lasting(two)), await api.codeOf(ps256(api.clock.now()))]).toEqual([200, 'INVALID_TOKEN'])
    const pssOnly = startApi([unnamed], { algorithms: ['PS256'] })
    expect([await pssOnly.codeOf(ps256(pssOnly.clock.now())), await pssOnly.codeOf(pssOnly.lasting(two))]).toEqual([200, 'INVALID_TOKEN'])
  })
})

describe('R-104 a key set that cannot be read', () => {
  test('R-104 is 503 with Retry-After, reaches no handler, is not asked for again at once, and heals', async () => {
    const broken: [string, HttpClient][] = [
      ['no answer', () => Promise.reject(new Error('connect ECONNREFUSED'))],
      ['a 500', async () => ({ status: 500, headers: {}, body: '{"keys":[]}' })],
      ['a redirect', async () => ({ status: 302, headers: { location: 'https://evil.example' }, body: '' })],
      ['no JSON', async () => ({ status: 200, headers: {}, body: '<html>' })],
      ['no key', async () => ({ status: 200, headers: {}, body: '{"keys":[]}' })],
      [
        'a private key only',
        async () => ({ status: 200, headers: {}, body: JSON.stringify({ keys: [{ ...publicJwk(one), d: 'AAAA' }] }) }),
      ],
    ]
    for (const [what, answer] of broken) {
      const api = startApi()
      api.set.answer = answer
      const token = api.lasting(one)
      const refused = await api.get(token)
      const known = what === 'a private key only' ? [401, 'INVALID_TOKEN'] : [503, 'SERVICE_UNAVAILABLE']

      expect([refused.status, refused.body['code']], what).toEqual(known)
      if (refused.status === 503) expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1)
      if (refused.status === 503) expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60)
      await Promise.all(Array.from({ length: 10 }, () => api.get(token)))
      expect([api.set.fetches, api.reached()], what).toEqual([1, 0])

      api.set.answer = null
      api.clock.advance(what.startsWith('no key') || what.startsWith('a private') ? 300 : 60)
      expect(await api.codeOf(token), what).toBe(200)
    }
  })

  test('R-104 closes on remembered tokens too, where staleIfErrorSeconds is 0, and says when the set is asked for again', async () => {
    const api = startApi(undefined, {}, { staleIfErrorSeconds: 0 })
    const token = api.lasting(one)
    await api.get(token)
    api.set.answer = () => Promise.reject(new Error('down'))

    api.clock.advance(239)
    expect(await api.codeOf(token)).toBe(200)
    api.clock.advance(61)
    for (const [seconds, fetches] of [
      [1, 2],
      [2, 3],
      [4, 4],
      [8, 5],
      [16, 6],
      [32, 7],
      [60, 8],
      [60, 9],
    ] as const) {
      const refused = await api.get(token)
      expect([refused.status, refused.headers['retry-after'], api.set.fetches]).toEqual([503, String(seconds), fetches])
      api.clock.advance(seconds - 1)
      expect([(await api.get(token)).headers['retry-after'], api.set.fetches]).toEqual(['1', fetches])
      api.clock.advance(1)
    }
    api.set.answer = null
    expect(await api.codeOf(token)).toBe(200)
  })

  test('serves the keys that were read for 24 hours, and asks again in the background meanwhile', async () => {
    const api = startApi()
    const token = tokenUnder(one, claimsAt(api.clock.now(), { exp: api.clock.now().getTime() / 1000 + 2 * 86_400 }))
    await api.get(token)
    api.set.answer = () => Promise.reject(new Error('down'))

    api.clock.advance(86_399)
    expect(await api.codeOf(token)).toBe(200)
    expect(api.set.fetches).toBe(2)
    api.clock.advance(1)
    expect(await api.codeOf(token)).toBe('SERVICE_UNAVAILABLE')
    api.set.answer = null
    api.clock.advance(2)
    expect(await api.codeOf(token)).toBe(200)
  })
})
