import supertest from 'supertest'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { OAuthTokens, OAuthUser, ProviderClient } from '../../src'
import * as errors from '../../src/core/errors'
import { createHttpClient } from '../../src/core/http-client'
import type { Mounted } from '../support/app'
import { databases } from '../support/databases'
import { answer, type FakeHandler, type FakeProvider, hostileAnswers, startFakeProvider, unreachableUrl } from '../support/fake-provider'
import { rowCounts } from './accounts-at-hand'
import { begin, callBack, cookiePair, type HttpResponse, isCleared, newPerson, onDatabase } from './redirect-steps'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onDatabase(database, { memory: true })

// One client for all: a small deadline, so that "never answers" is quick.
const httpClient = createHttpClient({ timeoutMs: 1_500 })

let elsewhere: FakeProvider
beforeAll(async () => {
  elsewhere = await startFakeProvider()
})
afterAll(() => elsewhere.close())

/** A login beside another tab's; the host is then shown to be unharmed. */
async function hostileLogin(host: Mounted, spoil: () => void, mend: () => void): Promise<HttpResponse> {
  const other = await begin(host, { profile: newPerson() })
  const attempt = await begin(host, { cookie: other.cookie, profile: newPerson() })
  const before = await rowCounts(host.knex)
  spoil()
  const response = await callBack(host, attempt.query, attempt)
  mend()
  expect(await rowCounts(host.knex)).toEqual(before)
  expect(cookiePair(response)).toBe(other.cookie)
  expect((await callBack(host, attempt.query, attempt)).body.code).toBe('OAUTH_STATE_MISMATCH')
  return response
}

function expectOAuthError(response: HttpResponse, details: object): void {
  expect([response.status, response.body.code], response.text).toEqual([502, 'OAUTH_ERROR'])
  expect(response.body).toEqual({
    detail: expect.any(String),
    code: 'OAUTH_ERROR',
    details: { provider: 'corp', status: null, body: null, ...details },
  })
}

const faults: Record<string, string> = {
  'never answers': 'F13',
  'drips a byte at a time': 'F14',
  'a truncated body': 'F15',
  'a reset connection': 'F15',
  'a 100 MB stream': 'F16',
  'a gzip bomb': 'F16',
  null: 'F17',
  'an array': 'F17',
  'a string': 'F17',
  'a number': 'F17',
  'invalid UTF-8': 'F17',
  '20,000-deep JSON': 'F17',
  'HTML with 200': 'F18',
  'a form with 200': 'F18',
  'an empty 204': 'F18',
  '200 with an error': 'F18',
  'a redirect with a usable body': 'F19',
  'a server error': 'F20',
}

describe.each(['token', 'userinfo'] as const)('a %s endpoint', (endpoint) => {
  test.each(Object.entries(faults))(
    'R-033, R-034: that answers with %s (%s) is 502 OAUTH_ERROR; no row, and the process lives',
    async (name) => {
      const host = await start({ providers: { corp: { httpClient } } })
      const handler = hostileAnswers[name]
      if (!handler) throw new Error(`no hostile answer ${name}`)

      const response = await hostileLogin(
        host,
        () => host.provider.on(endpoint, handler),
        () => host.provider.on(endpoint, null),
      )

      expectOAuthError(response, { status: response.body.details.status, body: response.body.details.body })
      expect(host.provider.requestsTo('token')).toHaveLength(1) // F20: a code is exchanged once, never retried
      const next = await begin(host, { profile: newPerson() })
      expect((await callBack(host, next.query, next)).status).toBe(200)
    },
  )

  test('that grants no more than the specification asks for: other token responses are refused', async () => {
    const host = await start({ providers: { corp: { scopes: ['profile', 'email'] } } })
    const usable = { access_token: host.provider.issueAccessToken(), token_type: 'Bearer' }
    const answers: [unknown, number][] = [
      [{ ...usable, token_type: 'bearer' }, 200],
      [{ ...usable, access_token: '' }, 502],
      [{ ...usable, access_token: {} }, 502],
      [{ ...usable, access_token: [usable.access_token] }, 502],
      [{ token_type: 'Bearer' }, 502],
      [{ ...usable, token_type: 'mac' }, 502],
      [{ access_token: usable.access_token }, 502],
      [{ ...usable, error: 'slow_down' }, 502],
      [{}, 502],
    ]
    host.provider.profile = newPerson()
    for (const [body, status] of answers) {
      host.provider.on('token', answer(200, body))
      const attempt = await begin(host)
      expect({ body, status: (await callBack(host, attempt.query, attempt)).status }).toEqual({ body, status })
    }
  })
})

test.each<[string, () => string]>([
  ['nobody answers for', () => unreachableUrl],
  ['has no address', () => 'https://provider.invalid/token'],
  ['does not speak TLS', () => elsewhere.tokenUrl.replace('http:', 'https:')],
])('F12: a provider that %s is 502 OAUTH_ERROR, and the cookie is cleared', async (_case, url) => {
  const host = await start({ providers: { corp: { tokenUrl: url(), httpClient } } })
  const attempt = await begin(host)
  const response = await callBack(host, attempt.query, attempt)
  expectOAuthError(response, {})
  expect(isCleared(response)).toBe(true)
})

test('F19: a redirect is not followed: the place it names sees nothing', async () => {
  const before = elsewhere.requests.length
  for (const status of [301, 302, 303, 307, 308]) {
    const host = await start()
    const to: FakeHandler = (_request, response) => void response.writeHead(status, { location: `${elsewhere.issuer}/token` }).end()
    for (const endpoint of ['token', 'userinfo'] as const) {
      const response = await hostileLogin(
        host,
        () => host.provider.on(endpoint, to),
        () => host.provider.on(endpoint, null),
      )
      expectOAuthError(response, { status, body: '' })
    }
  }
  expect(elsewhere.requests.length).toBe(before)
})

test.each([400, 401, 403, 404, 429, 500, 503])(
  'F20: status %s is 502 OAUTH_ERROR with the status and the body, asked once',
  async (status) => {
    const host = await start()
    for (const endpoint of ['token', 'userinfo'] as const) {
      const calls = host.provider.requestsTo(endpoint).length
      const response = await hostileLogin(
        host,
        () => host.provider.on(endpoint, answer(status, { error: 'refused' }, { 'retry-after': '1' })),
        () => host.provider.on(endpoint, null),
      )
      expectOAuthError(response, { status, body: '{"error":"refused"}' })
      expect(response.headers).not.toHaveProperty('retry-after')
      expect(host.provider.requestsTo(endpoint).length - calls).toBe(1)
    }
  },
)

test('R-043: details.body is at most 1 KiB and holds no secret, code or token, in the answer or the log', async () => {
  const host = await start()
  const { clientSecret } = host.provider
  const jwt = host.provider.signJwt({ sub: 'canary' })
  for (const filler of ['', 'x'.repeat(5_000_000)]) {
    const attempt = await begin(host)
    const code = String(attempt.query['code'])
    let verifier = ''
    host.provider.on('token', (request, response) => {
      verifier = String(request.form.get('code_verifier'))
      const echo = { error: 'no', request: request.body, code, secret: clientSecret, verifier, jwt, access_token: 'at-canary', filler }
      return answer(400, echo)(request, response)
    })

    const response = await callBack(host, attempt.query, attempt)

    expect(response.status).toBe(502)
    expect(response.body.details.provider).toBe('corp')
    expect(Buffer.byteLength(String(response.body.details.body ?? ''))).toBeLessThanOrEqual(1024)
    for (const secret of [clientSecret, code, verifier, jwt, 'at-canary', encodeURIComponent(clientSecret), attempt.state]) {
      expect(response.text + host.logs.text()).not.toContain(secret)
    }
  }
})

test('R-035: the access token is in the Authorization header and in no URL', async () => {
  const host = await start()
  const attempt = await begin(host, { profile: newPerson() })
  expect((await callBack(host, attempt.query, attempt)).status).toBe(200)
  const token = String(host.provider.requestsTo('userinfo')[0]?.headers.authorization).replace('Bearer ', '')
  expect(token).toMatch(/^access-/)
  for (const { url, body, form } of host.provider.requests) {
    expect(url).not.toContain('access')
    expect(body).not.toContain(token)
    expect(form.has('access_token')).toBe(false)
  }
})

describe('an id_token', () => {
  type Claims = Record<string, unknown>
  const forged: [string, (claims: Claims, host: Mounted) => string | Claims][] = [
    ['of another issuer', (claims) => ({ ...claims, iss: 'https://evil.example' })],
    ['without an issuer', ({ iss: _dropped, ...claims }) => claims],
    ['for another client', (claims) => ({ ...claims, aud: 'another' })],
    ['for two clients without azp', (claims) => ({ ...claims, aud: ['client-1', 'another'] })],
    ['authorized for another client', (claims) => ({ ...claims, azp: 'another' })],
    ['that has expired', (claims, { clock }) => ({ ...claims, exp: Math.floor(clock.now().getTime() / 1000) - 3600 })],
    ['without an expiry', ({ exp: _dropped, ...claims }) => claims],
    ['of the far future', (claims, { clock }) => ({ ...claims, iat: Math.floor(clock.now().getTime() / 1000) + 86_400 })],
    ['without a subject', ({ sub: _dropped, ...claims }) => claims],
    ['without a signature', (claims, host) => host.provider.signJwt(claims, { header: { alg: 'none' } })],
    [
      'signed with the client secret',
      (claims, host) => host.provider.signJwt(claims, { header: { alg: 'HS256' }, key: host.provider.clientSecret }),
    ],
    ['of a key nobody published', (claims, host) => host.provider.signJwt(claims, { header: { kid: 'unknown' } })],
    ['whose claims were changed', (claims, host) => tampered(host.provider.signJwt(claims))],
    ['that is no token', () => 'not.a.token'],
  ]
  test.each(forged)('R-026: %s is refused with 502, and no row is written', async (_case, forge) => {
    const host = await start()
    const response = await hostileLogin(
      host,
      () => {
        host.provider.idToken = (claims) => forge(claims, host)
      },
      () => {
        host.provider.idToken = null
      },
    )
    expectOAuthError(response, {})
  })

  test('R-027: a userinfo of another subject than the id_token is refused with 502, and no row is written', async () => {
    const host = await start()
    const response = await hostileLogin(
      host,
      () => host.provider.on('userinfo', answer(200, newPerson({ sub: 'somebody else' }))),
      () => host.provider.on('userinfo', null),
    )
    expectOAuthError(response, {})
  })

  function tampered(token: string): string {
    const [header, claims = '', signature] = token.split('.')
    const changed = { ...JSON.parse(Buffer.from(claims, 'base64url').toString()), email: 'victim@example.test' }
    return [header, Buffer.from(JSON.stringify(changed)).toString('base64url'), signature].join('.')
  }
})

test('R-036: a subject that is no text of 1 to 255 sane characters is 502, and never a row', async () => {
  const host = await start({ providers: { corp: { scopes: ['profile'] } } })
  const subjects = [
    'null',
    '""',
    '{}',
    '[]',
    'true',
    '9007199254740993',
    '1e21',
    '1.5',
    '["a"]',
    `"${'s'.repeat(256)}"`,
    '"a\\u0000b"',
    '"a\\nb"',
    '"\\ud800"',
  ]
  const before = await rowCounts(host.knex)
  for (const subject of [...subjects, undefined]) {
    const attempt = await begin(host)
    const body = subject === undefined ? '{"email":"a@example.test"}' : `{"sub":${subject},"email":"a@example.test"}`
    host.provider.on('userinfo', answer(200, body, { 'content-type': 'application/json' }))
    const response = await callBack(host, attempt.query, attempt)
    expect({ subject, status: response.status, code: response.body.code }).toEqual({ subject, status: 502, code: 'OAUTH_ERROR' })
  }
  expect(await rowCounts(host.knex)).toEqual(before)
})

describe('a custom client', () => {
  const tokens: OAuthTokens = {
    accessToken: 'a',
    tokenType: 'bearer',
    refreshToken: null,
    idToken: null,
    expiresIn: null,
    scope: null,
    raw: {},
  }

  function client(behaviour: Partial<ProviderClient>): ProviderClient {
    return {
      providerName: 'corp',
      clientId: 'custom',
      authorizeUrl: 'https://id.example.test/authorize',
      tokenUrl: 'https://id.example.test/token',
      scopes: ['profile'],
      exchangeCode: async () => tokens,
      fetchUser: async () => profile(),
      ...behaviour,
    }
  }

  function profile(changes: object = {}): OAuthUser {
    const { sub, email } = newPerson()
    return { provider: 'corp', subject: sub, email, emailVerified: true, name: null, picture: null, raw: {}, ...changes }
  }

  async function logIn(host: Mounted): Promise<HttpResponse> {
    const login = await supertest(host.app).get('/auth/oauth/corp/login')
    const state = String(new URL(String(login.headers['location'])).searchParams.get('state'))
    return callBack(host, { state, code: 'c' }, { cookie: cookiePair(login) })
  }

  const throwing = (thrown: unknown) => () => {
    throw thrown
  }
  const answering = (value: unknown) => async () => value as never // deliberately not what the type says
  const unusable: [string, () => Promise<never>][] = [
    ['throws a string', throwing('boom canary-77')],
    ['throws undefined', throwing(undefined)],
    ['throws null', throwing(null)],
    ['rejects with a TypeError', () => Promise.reject(new TypeError('canary-77'))],
    ['rejects with nothing', () => Promise.reject()],
    ['throws an object that cannot be read', throwing(Object.freeze(Object.create(null)))],
    ['answers null', answering(null)],
    ['answers undefined', answering(undefined)],
    ['answers false', answering(false)],
    ['answers a string', answering('token')],
    ['answers an empty object', answering({})],
    [
      'answers an object that throws when it is read',
      answering(new Proxy({}, { get: throwing(new Error('canary-77')), ownKeys: throwing(new Error('canary-77')) })),
    ],
  ]

  test.each(unusable)('whose exchangeCode %s is 502 OAUTH_ERROR, and never a 500', async (_case, exchangeCode) => {
    const host = await start({ providers: { corp: client({ exchangeCode, fetchUser: async () => profile() }) } })
    const before = await rowCounts(host.knex)
    const response = await logIn(host)
    expectOAuthError(response, {})
    expect(response.text + host.logs.text()).not.toContain('canary-77')
    expect(await rowCounts(host.knex)).toEqual(before)
  })

  test.each(unusable)('whose fetchUser %s is 502 OAUTH_ERROR, and never a 500', async (_case, fetchUser) => {
    const host = await start({ providers: { corp: client({ fetchUser }) } })
    const before = await rowCounts(host.knex)
    const failures: unknown[] = []
    host.auth.events.on('provider.failed', (payload) => failures.push(payload))
    const response = await logIn(host)
    expectOAuthError(response, {})
    expect(response.text + host.logs.text()).not.toContain('canary-77')
    expect(await rowCounts(host.knex)).toEqual(before)
    expect(failures).toEqual([{ provider: 'corp', code: 'OAUTH_ERROR', status: null }])
  })

  test.each([{ subject: '' }, { subject: null }, { subject: 1.5 }, { subject: {} }, { subject: 'a\u0000' }, { subject: 's'.repeat(256) }])(
    'that names an unusable subject (%j) is 502 OAUTH_ERROR',
    async (changes) => {
      const host = await start({ providers: { corp: client({ fetchUser: async () => profile(changes) }) } })
      expectOAuthError(await logIn(host), {})
    },
  )

  test('that fills the other fields with nonsense still logs in: what is unusable is absent', async () => {
    const nonsense = { provider: 'another', emailVerified: 'certainly', name: { toString: () => 'x' }, picture: ['x'], raw: 'raw' }
    const host = await start({ providers: { corp: client({ fetchUser: async () => profile(nonsense) }) } })
    const response = await logIn(host)
    expect(response.status, response.text).toBe(200)
    const [identity] = await host.auth.service.listIdentities(response.body.user_id)
    expect(identity).toMatchObject({ provider: 'corp', emailVerified: null, name: null, picture: null })
  })

  test('that throws an error of this library keeps its code; a 502 gets the registration key, and the secret cause stays inside', async () => {
    const own: [Error, number, string, object][] = [
      [
        new errors.OAuthError({ details: { provider: 'inner', status: 418, body: 'teapot' } }),
        502,
        'OAUTH_ERROR',
        { provider: 'corp', status: 418, body: 'teapot' },
      ],
      [new errors.OAuthTokenRejectedError(), 401, 'OAUTH_TOKEN_REJECTED', {}],
    ]
    for (const [error, status, code, details] of own) {
      const host = await start({ providers: { corp: client({ fetchUser: () => Promise.reject(error) }) } })
      const response = await logIn(host)
      expect([response.status, response.body.code, response.body.details]).toEqual([status, code, details])
    }
  })
})
