import type { ServerResponse } from 'node:http'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { createHttpClient, createTokenVerifier, type HttpClient, OidcClient, type ProviderClient } from '../../src'
import type { Mounted } from '../support/app'
import { databases } from '../support/databases'
import { answer, type FakeProvider } from '../support/fake-provider'
import { bearer, begin, callBack, cookiePair, type HttpResponse, newPerson, onDatabase } from './redirect-steps'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onDatabase(database, { memory: true })

const cap = 50
const introspecting =
  (httpClient: HttpClient = createHttpClient()) =>
  (provider: FakeProvider) =>
    new OidcClient(provider.oidcOptions({ introspectionUrl: provider.introspectionUrl, httpClient }))

/** Many requests at once, and a look at those that have been answered. */
function flood(count: number, send: (index: number) => Promise<HttpResponse>) {
  const answered: HttpResponse[] = []
  let told = () => {}
  const all = Array.from({ length: count }, async (_, index) => {
    answered.push(await send(index))
    told()
  })
  return {
    answered,
    /** Settles when so many have been answered. */
    async until(wanted: number) {
      while (answered.length < wanted) await new Promise<void>((resolve) => (told = resolve))
    },
    end: () => Promise.all(all),
  }
}

/** An endpoint of the provider that keeps its callers waiting, until they are let go. */
function hang(provider: FakeProvider, endpoint: 'introspect' | 'token' | 'jwks' | 'elsewhere') {
  const waiting: ServerResponse[] = []
  provider.on(endpoint, (_request, response) => void waiting.push(response))
  return {
    waiting,
    /** Settles when so many wait. */
    async until(wanted: number) {
      while (waiting.length < wanted) await new Promise((resolve) => setImmediate(resolve))
    },
    letGo() {
      for (const response of waiting) void answer(503, {})({} as never, response) // `answer` does not look at the request
    },
  }
}

let addresses = 0

/** Of a client that nobody has met. */
function newClient(): Record<string, string> {
  addresses += 1
  return { 'X-Forwarded-For': `10.0.${addresses >> 8}.${addresses & 255}` }
}

const token = (host: Mounted, key: string, { client = newClient(), accessToken = 'in-hand' } = {}) =>
  supertest(host.app).post(`/auth/oauth/${key}/token`).set(client).send({ access_token: accessToken })

async function mountWith(providers: Record<string, ProviderClient | ((provider: FakeProvider) => ProviderClient)>): Promise<Mounted> {
  return start({
    providers,
    options: { throttle: { routes: false } },
    host: (app) => app.set('trust proxy', 'loopback').get('/ping', (_req, res) => void res.send('pong')),
  })
}

/** Signed in by another key, before anything hangs. */
async function member(host: Mounted): Promise<Record<string, string>> {
  const { query, cookie } = await begin(host, { key: 'other', profile: newPerson() })
  return bearer(await callBack(host, query, { key: 'other', cookie }))
}

async function expectResponsive(host: Mounted, authorization: Record<string, string>): Promise<void> {
  const app = supertest(host.app)
  expect((await app.get('/ping')).text).toBe('pong')
  expect((await app.get('/auth/me').set(authorization)).status).toBe(200)
  expect((await app.get('/auth/oauth/corp/login')).status).toBe(302)
}

const codes = (responses: HttpResponse[]) => [...new Set(responses.map(({ status, body }) => `${status} ${body.code}`))]

describe('X13: a provider that hangs', () => {
  test('X13: of 500 tokens, 50 wait; the others are 502 at once, other routes and providers are as ever', async () => {
    const host = await mountWith({ corp: introspecting(), other: {} as ProviderClient })
    const authorization = await member(host)
    const hung = hang(host.provider, 'introspect')

    const tokens = flood(500, () => token(host, 'corp'))
    await tokens.until(500 - cap)

    expect(codes(tokens.answered)).toEqual(['502 OAUTH_PROVIDER_UNAVAILABLE'])
    await hung.until(cap)
    await expectResponsive(host, authorization)
    expect([hung.waiting.length, tokens.answered.length]).toEqual([cap, 500 - cap])
    await member(host)
    hung.letGo()
    await tokens.end()
    expect(tokens.answered).toHaveLength(500)
    // The places are free again.
    host.provider.on('introspect', null)
    expect((await token(host, 'corp')).body.code).toBe('OAUTH_TOKEN_REJECTED')
  })

  test('X13: of 600 tokens nobody signed, 500 wait for a key set that hangs, by one call; the others are 502 at once', async () => {
    const verifying = (provider: FakeProvider) =>
      new OidcClient(
        provider.oidcOptions({
          tokenVerifier: createTokenVerifier({ issuer: provider.issuer, jwksUri: provider.jwksUri, algorithms: ['RS256'] }),
        }),
      )
    const host = await mountWith({ corp: verifying, other: {} as ProviderClient })
    const authorization = await member(host)
    const hung = hang(host.provider, 'jwks')
    const unsigned = `${Buffer.from('{"alg":"RS256","kid":"x"}').toString('base64url')}.e30.AAAA`

    const tokens = flood(600, () => token(host, 'corp', { accessToken: unsigned }))
    await tokens.until(100)

    expect(codes(tokens.answered)).toEqual(['502 OAUTH_PROVIDER_UNAVAILABLE'])
    await expectResponsive(host, authorization)
    expect([hung.waiting.length, tokens.answered.length]).toEqual([1, 100])
    hung.letGo()
    await tokens.end()
  })

  test('X13: of 500 callbacks, 50 wait; the others are 502 OAUTH_ERROR at once', async () => {
    const host = await mountWith({ corp: introspecting(), other: {} as ProviderClient })
    const authorization = await member(host)
    const attempts: Awaited<ReturnType<typeof begin>>[] = []
    for (let index = 0; index < 500; index += 1) attempts.push(await begin(host, { profile: newPerson() }))
    const hung = hang(host.provider, 'token')

    const callbacks = flood(500, (index) => callBack(host, attempts[index]?.query ?? {}, { ...attempts[index], headers: newClient() }))
    await callbacks.until(500 - cap)

    expect(codes(callbacks.answered)).toEqual(['502 OAUTH_ERROR'])
    await hung.until(cap)
    await expectResponsive(host, authorization)
    expect([hung.waiting.length, callbacks.answered.length]).toEqual([cap, 500 - cap])
    hung.letGo()
    await callbacks.end()
  })

  test('two keys with clients of their own have each their fifty, at one and the same host', async () => {
    const host = await mountWith({ corp: introspecting(), corp2: introspecting() })
    const hung = hang(host.provider, 'introspect')
    const [one, two] = [flood(60, () => token(host, 'corp')), flood(60, () => token(host, 'corp2'))]
    await Promise.all([one.until(10), two.until(10)])
    await hung.until(2 * cap)
    expect([one.answered.length, two.answered.length]).toEqual([10, 10])
    hung.letGo()
    await Promise.all([one.end(), two.end()])
  })

  test('an HTTP client of the host’s, without any limit, is held to it too', async () => {
    const release: (() => void)[] = []
    const endless: HttpClient = () =>
      new Promise((_resolve, reject) => {
        release.push(() => reject(new Error('gone')))
      })
    const host = await mountWith({ corp: introspecting(endless), other: {} as ProviderClient })
    const authorization = await member(host)
    const tokens = flood(200, () => token(host, 'corp'))
    await tokens.until(200 - cap)
    expect(release).toHaveLength(cap)
    await expectResponsive(host, authorization)
    for (const end of release) end()
    await tokens.end()
  })

  test('and so is a whole client of the host’s, whatever it calls with', async () => {
    const release: (() => void)[] = []
    const acme: ProviderClient = {
      providerName: 'acme',
      clientId: 'app',
      authorizeUrl: 'https://acme.example/authorize',
      tokenUrl: 'https://acme.example/token',
      scopes: [],
      exchangeCode: () => Promise.reject(new Error('no code here')),
      fetchUser: () => Promise.reject(new Error('no profile here')),
      verifyTokenAudience: () =>
        new Promise((_resolve, reject) => {
          release.push(() => reject(new Error('gone')))
        }),
    }
    const host = await mountWith({ acme, corp: {} as ProviderClient, other: {} as ProviderClient })
    const authorization = await member(host)
    const tokens = flood(200, () => token(host, 'acme'))
    await tokens.until(200 - cap)
    expect([codes(tokens.answered), release.length]).toEqual([['502 OAUTH_ERROR'], cap])
    await expectResponsive(host, authorization)
    for (const end of release) end()
    await tokens.end()
  })
})

describe('tokens that anybody can make up', () => {
  test.each<[string, (provider: FakeProvider) => ProviderClient]>([
    ['the HTTP client of the library', introspecting()],
    [
      'one HTTP client that has a circuit breaker',
      introspecting(createHttpClient({ circuitBreaker: { failures: 5, resetAfterMs: 60_000 } })),
    ],
    [
      'an HTTP client of the host’s',
      (provider) => {
        const inner = createHttpClient()
        return introspecting((url, request) => inner(url, request))(provider)
      },
    ],
  ])('take no place of people who come back from the provider, while it hangs, through %s', async (_case, corp) => {
    const host = await mountWith({ corp, other: {} as ProviderClient })
    const attempts = await Promise.all(Array.from({ length: 10 }, () => begin(host, { profile: newPerson() })))
    const hung = hang(host.provider, 'introspect')
    const tokens = flood(100, () => token(host, 'corp'))
    await Promise.all([tokens.until(100 - cap), hung.until(cap)])

    const logins = await Promise.all(attempts.map(({ query, cookie }) => callBack(host, query, { cookie })))

    expect(logins.map(({ status }) => status)).toEqual(Array(10).fill(200))
    hung.letGo()
    await tokens.end()
  })

  test('open no circuit breaker for people who come back from the provider', async () => {
    const host = await mountWith({ corp: introspecting(createHttpClient({ circuitBreaker: { failures: 2, resetAfterMs: 60_000 } })) })
    host.provider.on('introspect', answer(503, {}))
    for (let call = 0; call < 20; call += 1) expect((await token(host, 'corp')).body.code).toBe('OAUTH_PROVIDER_UNAVAILABLE')
    expect(host.provider.requestsTo('introspect')).toHaveLength(2)

    const { query, cookie } = await begin(host, { profile: newPerson() })
    expect((await callBack(host, query, { cookie })).status).toBe(200)
  })

  test('take no place of a callback in a whole client of the host’s', async () => {
    const release: (() => void)[] = []
    const person = newPerson()
    const acme: ProviderClient = {
      providerName: 'acme',
      clientId: 'app',
      authorizeUrl: 'https://acme.example/authorize',
      tokenUrl: 'https://acme.example/token',
      scopes: [],
      exchangeCode: async () => ({
        accessToken: 'a',
        tokenType: 'bearer',
        refreshToken: null,
        idToken: null,
        expiresIn: null,
        scope: null,
        raw: {},
      }),
      fetchUser: async () => ({
        ...person,
        provider: 'acme',
        subject: person.sub,
        emailVerified: true,
        name: null,
        picture: null,
        raw: {},
      }),
      verifyTokenAudience: () =>
        new Promise((_resolve, reject) => {
          release.push(() => reject(new Error('gone')))
        }),
    }
    const host = await mountWith({ acme })
    const login = await supertest(host.app).get('/auth/oauth/acme/login')
    const state = new URL(String(login.headers['location'])).searchParams.get('state') ?? ''
    const tokens = flood(100, () => token(host, 'acme'))
    await tokens.until(100 - cap)

    const back = await callBack(host, { state, code: 'c' }, { key: 'acme', cookie: cookiePair(login) })

    expect([back.status, release.length]).toEqual([200, cap])
    for (const end of release) end()
    await tokens.end()
  })

  test('nor do callbacks that hang keep out people with a token in hand', async () => {
    const host = await mountWith({ corp: introspecting() })
    const attempts: Awaited<ReturnType<typeof begin>>[] = []
    for (let index = 0; index < 60; index += 1) attempts.push(await begin(host, { profile: newPerson() }))
    const hung = hang(host.provider, 'token')
    const callbacks = flood(60, (index) => callBack(host, attempts[index]?.query ?? {}, { ...attempts[index], headers: newClient() }))
    await Promise.all([callbacks.until(60 - cap), hung.until(cap)])

    const accessToken = host.provider.issueAccessToken({ profile: newPerson() })
    const answered = await supertest(host.app).post('/auth/oauth/corp/token').send({ access_token: accessToken })

    expect([answered.status, answered.body.code]).toEqual([200, undefined])
    hung.letGo()
    await callbacks.end()
  })
})

describe('one client, as fast as its rate limit allows', () => {
  const [attacker, others] = [{ 'X-Forwarded-For': '192.0.2.1' }, 20]

  test('leaves room for the callbacks of 20 others at a provider that hangs, and its own work when they are sent again', async () => {
    const host = await mountWith({ corp: {} as ProviderClient })
    const attempts: Awaited<ReturnType<typeof begin>>[] = []
    for (let index = 0; index < 60 + others; index += 1) attempts.push(await begin(host, { profile: newPerson() }))
    const hung = hang(host.provider, 'token')
    const send = (index: number, headers: Record<string, string>) =>
      callBack(host, attempts[index]?.query ?? {}, { ...attempts[index], headers })

    const junk = flood(60, (index) => send(index, attacker))
    await Promise.all([junk.until(60 - 30), hung.until(30)])
    const people = flood(others, (index) => send(60 + index, newClient()))
    await hung.until(30 + others)

    expect([codes(junk.answered), people.answered]).toEqual([['502 OAUTH_PROVIDER_UNAVAILABLE'], []])
    hung.letGo()
    await Promise.all([junk.end(), people.end()])
    host.provider.on('token', null)
    const again = await Promise.all(attempts.slice(0, 60).map((_, index) => send(index, newClient())))
    expect(again.filter(({ status }) => status === 200)).toHaveLength(30)
  })

  test('leaves room for the tokens in hand of 20 others', async () => {
    const host = await mountWith({ corp: introspecting() })
    const hung = hang(host.provider, 'introspect')

    const junk = flood(60, () => token(host, 'corp', { client: attacker }))
    await Promise.all([junk.until(60 - 30), hung.until(30)])
    const people = flood(others, () => token(host, 'corp'))
    await hung.until(30 + others)

    expect([codes(junk.answered), people.answered]).toEqual([['502 OAUTH_PROVIDER_UNAVAILABLE'], []])
    hung.letGo()
    await Promise.all([junk.end(), people.end()])
    host.provider.on('introspect', null)
    expect((await token(host, 'corp', { client: attacker })).body.code).toBe('OAUTH_TOKEN_REJECTED')
  })

  test('leaves room for the pushed requests of 20 others', async () => {
    const par = (provider: FakeProvider) =>
      new OidcClient(provider.oidcOptions({ par: true, pushedAuthorizationUrl: `${provider.issuer}/par` }))
    const host = await mountWith({ corp: par })
    const hung = hang(host.provider, 'elsewhere')
    const login = (client: Record<string, string>) => supertest(host.app).get('/auth/oauth/corp/login').set(client)

    const junk = flood(60, async () => login(attacker))
    await Promise.all([junk.until(60 - 30), hung.until(30)])
    const people = flood(others, async () => login(newClient()))
    await hung.until(30 + others)

    expect([codes(junk.answered), people.answered]).toEqual([['502 OAUTH_PROVIDER_UNAVAILABLE'], []])
    hung.letGo()
    await Promise.all([junk.end(), people.end()])
  })

  test('has its share at each provider', async () => {
    const host = await mountWith({ corp: introspecting(), corp2: introspecting() })
    const hung = hang(host.provider, 'introspect')
    const [one, two] = [
      flood(30, () => token(host, 'corp', { client: attacker })),
      flood(30, () => token(host, 'corp2', { client: attacker })),
    ]
    await hung.until(60)
    expect([...one.answered, ...two.answered]).toEqual([])
    hung.letGo()
    await Promise.all([one.end(), two.end()])
  })
})

describe('a circuit breaker', () => {
  test('that is open is 502 at once, and the log says why', async () => {
    const httpClient = createHttpClient({ circuitBreaker: { failures: 2, resetAfterMs: 60_000 } })
    const host = await mountWith({ corp: introspecting(httpClient), other: {} as ProviderClient })
    host.provider.on('introspect', answer(503, {}))
    for (let call = 0; call < 4; call += 1) {
      const response = await token(host, 'corp')
      const status = call < 2 ? 503 : null
      expect([response.status, response.body]).toMatchObject([502, { code: 'OAUTH_PROVIDER_UNAVAILABLE', details: { status, body: null } }])
    }
    expect(host.provider.requestsTo('introspect')).toHaveLength(2)
    expect(host.logs.text()).toContain('CIRCUIT_OPEN')
    const { query, cookie } = await begin(host, { profile: newPerson() })
    expect((await callBack(host, query, { cookie })).status).toBe(200)
    await member(host)
  })
})
