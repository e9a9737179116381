import express from 'express'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { baseUrl, signIn } from '../support/app'
import { answer } from '../support/fake-provider'
import { around, expectOneLine, useDatabase, type WrongSetup, wrongApp } from './wrong-app'

useDatabase()

const login = { email: 'ana@example.test', password: 'a correct horse battery' }
const me = (browser: Parameters<WrongSetup['act']>[0], headers: Record<string, string> = {}, prefix = '/auth') =>
  browser.get(`${prefix}/me`).set(headers)

const setups: [what: string, setup: WrongSetup][] = [
  [
    'a proxy that Express does not trust',
    {
      entry: 'behind-a-proxy',
      level: 'warn',
      says: /X-Forwarded-For.*trusts no proxy.*share one rate limit.*app\.set\('trust proxy'/,
      act: (browser) => me(browser, { 'X-Forwarded-For': '203.0.113.7' }),
    },
  ],
  [
    'a proxy that Express does not trust, which sends the header of RFC 7239',
    {
      entry: 'behind-a-proxy',
      level: 'warn',
      says: /the header Forwarded,.*trusts no proxy.*share one rate limit.*fail with 429.*reads only X-Forwarded-For/,
      act: (browser) => me(browser, { Forwarded: 'for=203.0.113.7' }),
    },
  ],
  [
    'every proxy trusted',
    {
      entry: 'trust-every-proxy',
      level: 'warn',
      says: /'trust proxy' is true.*Name your proxies/,
      app: (auth) => around(auth, { trust: true }),
      act: (browser) => me(browser),
    },
  ],
  [
    'cookieSecure where the public URL is http',
    {
      entry: 'cookies-over-http',
      level: 'warn',
      says: /plain http.*cookieSecure.*false.*https/,
      mount: { settings: { publicUrl: 'http://localhost:3000', cookieSecure: true, oauthRedirectBaseUrl: '' } },
      act: (browser) => me(browser),
    },
  ],
  [
    'cookieSecure where a trusted proxy says http',
    {
      entry: 'cookies-over-http',
      level: 'warn',
      says: /plain http/,
      mount: { settings: { cookieSecure: true } },
      app: (auth) => around(auth, { trust: 'loopback' }),
      act: (browser) => me(browser, { 'X-Forwarded-Proto': 'http' }),
    },
  ],
  [
    'a prefix that is not where the router is mounted',
    {
      entry: 'mount-and-prefix',
      level: 'warn',
      says: /mounted at another path.*prefix: '\/members'/,
      app: (auth) => around(auth, { path: '/members' }),
      act: (browser) => me(browser, {}, '/members'),
    },
  ],
  [
    'express.raw() in front',
    {
      entry: 'body-parser',
      level: 'warn',
      says: /left a Buffer.*express\.raw\(\)/,
      app: (auth) => around(auth, { before: [express.raw({ type: () => true })] }),
      act: async (browser) => expect((await browser.post('/auth/login').send(login)).status).toBe(422),
    },
  ],
  [
    'express.text() in front',
    {
      entry: 'body-parser',
      level: 'warn',
      says: /left a string/,
      app: (auth) => around(auth, { before: [express.text({ type: () => true })] }),
      act: async (browser) => expect((await browser.post('/auth/login').send(login)).status).toBe(422),
    },
  ],
  [
    'a login begun at another host than the public one',
    {
      entry: 'other-host',
      level: 'warn',
      says: /began at the host 127\.0\.0\.1:\d+.*app\.example\.test.*OAUTH_STATE_MISMATCH.*publicUrl/,
      act: async (browser) => expect((await browser.get('/auth/oauth/corp/login')).status).toBe(302),
    },
  ],
  [
    'an origin that is not in trustedOrigins',
    {
      entry: 'origin-not-trusted',
      level: 'warn',
      says: /https:\/\/web\.example\.test was refused.*trustedOrigins \(AUTH_TRUSTED_ORIGINS\)/,
      mount: { settings: { tokenDelivery: 'cookie' } },
      act: async (browser) => {
        const response = await browser.post('/auth/login').set('Origin', 'https://web.example.test').send(login)
        expect(response.body).toMatchObject({ code: 'CSRF_VALIDATION_FAILED', details: { reason: 'origin' } })
      },
    },
  ],
  [
    'a page that hides its origin over plain http',
    {
      entry: 'origin-null',
      level: 'warn',
      says: /Origin: null was refused.*hides its origin.*Referrer-Policy.*helmet.*https/,
      mount: { settings: { tokenDelivery: 'cookie' } },
      act: async (browser) => {
        const response = await browser.post('/auth/login').set('Origin', 'null').send(login)
        expect(response.body).toMatchObject({ code: 'CSRF_VALIDATION_FAILED', details: { reason: 'origin' } })
      },
    },
  ],
  [
    'a form on another subdomain',
    {
      entry: 'another-site',
      level: 'warn',
      says: /without Origin was refused.*another site or subdomain.*fetch.*trustedOrigins/,
      mount: { settings: { tokenDelivery: 'cookie' } },
      act: async (browser) => {
        const response = await browser.post('/auth/login').set('Sec-Fetch-Site', 'same-site').send(login)
        expect(response.body).toMatchObject({ code: 'CSRF_VALIDATION_FAILED', details: { reason: 'site' } })
      },
    },
  ],
  [
    'a login at a provider that a script begins',
    {
      entry: 'a-login-by-fetch',
      level: 'warn',
      says: /with fetch or XMLHttpRequest.*navigation.*link.*location\.assign/,
      act: async (browser) => {
        const headers = { 'Sec-Fetch-Mode': 'cors', 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Dest': 'empty' }
        const response = await browser.get('/auth/oauth/corp/login').set(headers)
        expect(response.body).toMatchObject({ code: 'CSRF_VALIDATION_FAILED', details: { reason: 'site' } })
      },
    },
  ],
  [
    'a clock that is ahead where tokens are issued',
    {
      entry: 'clock',
      level: 'warn',
      says: /from the future.*clock.*NTP/,
      act: async (browser, mounted) => {
        const { body } = await signIn(mounted, mounted.browser())
        mounted.clock.advance(-120)
        const response = await browser.get('/auth/oauth/accounts').set('Authorization', `Bearer ${body.access_token}`)
        expect(response.status).toBe(200) // accepted as before
      },
    },
  ],
]

describe('a set-up that is wrong is one line of the log, with cause and fix', () => {
  test.each(setups)('%s', (_what, setup) => expectOneLine(setup))
})

describe('a provider that refuses our client', () => {
  const refusals: [number, object][] = [
    [401, { error: 'invalid_client', error_description: 'the client secret is wrong' }],
    [400, { error: 'unauthorized_client' }],
    [400, { error: 'redirect_uri_mismatch' }],
    [200, { error: 'incorrect_client_credentials' }],
    [401, { message: 'no' }],
  ]

  test.each(refusals)('%i %j is in the log, and in `details.body` of the 502 without our secrets (25.9.6)', async (status, body) => {
    const mounted = await wrongApp()
    mounted.provider.on('token', answer(status, { ...body, client_secret: mounted.provider.clientSecret }))
    const responses = [await signIn(mounted), await signIn(mounted)]

    for (const { status: answered, body: told } of responses) {
      expect(answered).toBe(502)
      expect(told.details).toEqual({ provider: 'corp', status, body: JSON.stringify({ ...body, client_secret: '[removed]' }) })
    }
    const lines = mounted.logs.entries.filter(({ message }) => message.endsWith('#client-refused'))
    const error = 'error' in body ? body.error : null
    expect(lines).toEqual([
      {
        level: 'error',
        fields: { provider: 'corp', error, body: expect.stringContaining('[removed]') },
        message: expect.stringMatching(/provider corp refuses this application.*check clientSecret and clientAuthentication/),
      },
    ])
    expect(mounted.logs.text()).not.toContain(mounted.provider.clientSecret)
  })

  test.each([
    ['a/secret+with=signs', 'client_secret_basic', true],
    ['a secret of words', 'client_secret_basic', true],
    ['plainSecret-7', 'client_secret_basic', false],
    ['a/secret+with=signs', 'client_secret_post', false],
  ] as const)(
    'and a secret %j sent by %s: the line names special characters: %s (25.7.13)',
    async (clientSecret, clientAuthentication, isNamed) => {
      const mounted = await wrongApp({ providers: { corp: { clientSecret, clientAuthentication } } })
      mounted.provider.on('token', answer(401, { error: 'invalid_client' }))
      await signIn(mounted)
      const line = mounted.logs.entries.find(({ message }) => message.endsWith('#client-refused'))?.message
      expect([line?.includes('has special characters, which client_secret_basic encodes'), line?.includes(clientSecret)]).toEqual([
        isNamed,
        false,
      ])
    },
  )

  test.each([
    ['AADSTS:70008', 'AADSTS:70008'],
    ['a sentence with blanks', 'other'],
    [{ deep: 1 }, 'other'],
  ])('any other refusal is logged with its error %j as %s, and the visitor reads it as before', async (error, logged) => {
    const mounted = await wrongApp()
    mounted.provider.on('token', answer(400, { error }))
    const { body } = await signIn(mounted)

    expect(body.details.body).toBe(JSON.stringify({ error }))
    const [line] = mounted.logs.entries.filter(({ message }) => message === 'doorward: a provider call failed')
    expect(line?.fields).toMatchObject({ provider: 'corp', status: 400, error: logged })
  })
})

test('each redirect URI to register is told at boot', async () => {
  const { logs } = await wrongApp({ providers: { corp: {}, own: { redirectUri: 'https://other.example.test/back' } } })
  const told = logs.entries.filter(({ message }) => message.endsWith('#redirect-uri'))

  expect(told.map(({ level, fields }) => ({ level, fields }))).toEqual([
    { level: 'info', fields: { provider: 'corp', redirectUri: `${baseUrl}/auth/oauth/corp/callback` } },
    { level: 'info', fields: { provider: 'own', redirectUri: 'https://other.example.test/back' } },
  ])
})

describe('a set-up that is right says nothing', () => {
  // Two lines are no notices: the redirect URIs, told at every boot, and the refusal of a request, told each time.
  const lines = (logs: { entries: { level: string; message: string }[] }) =>
    logs.entries.filter(({ message }) => /troubleshooting\.md#(?!.*redirect-uri|a-401-or-403)/.test(message))

  test('behind a trusted proxy that serves https', async () => {
    const mounted = await wrongApp({ settings: { cookieSecure: true } })
    const app = around(mounted.auth, { trust: 'loopback' })
    const forwarded = { 'X-Forwarded-For': '203.0.113.7', 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'app.example.test' }
    await supertest(app).get('/auth/oauth/corp/login').set(forwarded)
    await supertest(app).get('/auth/me').set(forwarded)

    expect(lines(mounted.logs)).toEqual([])
  })

  test('behind a TLS proxy nobody told Express of, cookies are not spoken of', async () => {
    const mounted = await wrongApp({ settings: { cookieSecure: true } })
    await mounted.browser().get('/auth/me')

    expect(lines(mounted.logs)).toEqual([])
  })
})

test('of origins the first ten are told, once each, and nothing that is no origin', async () => {
  const mounted = await wrongApp({ settings: { tokenDelivery: 'cookie' } })
  for (let round = 0; round < 2; round++)
    for (let number = 0; number < 12; number++)
      await mounted.browser().post('/auth/login').set('Origin', `https://site-${number}.test`).send(login)
  await mounted.browser().post('/auth/login').set('Origin', 'null').send(login)
  const told = mounted.logs.entries.flatMap(({ fields }) => ('origin' in fields ? [fields.origin] : []))

  expect(told).toEqual(Array.from({ length: 10 }, (_, number) => `https://site-${number}.test`))
})

test('a request of another site without an origin is refused by reason `site`, and is no error of the log', async () => {
  const mounted = await wrongApp({ settings: { tokenDelivery: 'cookie' } })
  const response = await mounted.browser().post('/auth/login').set('Sec-Fetch-Site', 'cross-site').send(login)

  expect(response.body.details).toEqual({ reason: 'site' })
  expect(mounted.logs.entries.filter(({ level }) => level !== 'info' && level !== 'warn')).toEqual([])
})

test('the log of a failed request has the sentence of our own error', async () => {
  const mounted = await wrongApp()
  const { users, ...store } = createKnexStore({ knex: mounted.knex, users: { table: 'nowhere' } })
  const broken = await wrongApp({ options: { store: { ...store, users } } })
  await broken.browser().post('/auth/login').send(login)
  const [line] = broken.logs.entries.filter(({ message }) => message === 'doorward: a request failed')

  expect(line?.fields).toMatchObject({ cause: { name: 'DriverError', message: expect.stringContaining('users.findByEmail') } })
})

test('the log says which check of an id_token failed', async () => {
  const mounted = await wrongApp()
  const response = await signIn(mounted, mounted.browser(), { profile: {} })
  expect(response.status).toBe(200)
  mounted.provider.on('token', (_request, reply) =>
    answer(200, {
      access_token: 'x',
      token_type: 'bearer',
      id_token: mounted.provider.signJwt({ sub: 'x', iss: mounted.provider.issuer, aud: 'another', exp: 9_999_999_999, iat: 1 }),
    })(_request, reply),
  )
  await signIn(mounted)
  const [line] = mounted.logs.entries.filter(({ message }) => message === 'doorward: a provider call failed')

  expect(line?.fields).toMatchObject({
    cause: { name: 'Error', message: 'id_token refused: aud does not name this client: check clientId' },
  })
})
