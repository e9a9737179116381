import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import {
  createHttpClient,
  createKnexStore,
  createTokenVerifier,
  errors,
  GitHubClient,
  GoogleClient,
  type OAuthUser,
  OidcClient,
  type ProviderClient,
} from '../../src'
import { amrOf } from '../local/people'
import { baseUrl, type Mounted, type MountOptions, startLogin } from '../support/app'
import { databases } from '../support/databases'
import { answer, type FakeProvider, hostileAnswers } from '../support/fake-provider'
import { faultyStore } from '../support/faulty-store'
import { addIdentity, addUser, rowCounts } from './accounts-at-hand'
import { bearer, callBack, type HttpResponse, newPerson, onDatabase, setCookies } from './redirect-steps'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start, opened } = onDatabase(database, { memory: true })

const httpClient = createHttpClient({ timeoutMs: 1_500 })
const unlimited = { throttle: { routes: false } } as const

/** One provider behind every kind of client. */
const kinds = {
  google: (provider: FakeProvider) => new GoogleClient(provider.googleOptions({ httpClient })),
  github: (provider: FakeProvider) => new GitHubClient(provider.githubOptions({ httpClient })),
  introspection: (provider: FakeProvider) => oidc(provider, { introspectionUrl: provider.introspectionUrl }),
  tokeninfo: (provider: FakeProvider) => oidc(provider, { tokeninfoUrl: provider.tokeninfoUrl }),
  verifier: (provider: FakeProvider) =>
    oidc(provider, {
      tokenVerifier: createTokenVerifier({ issuer: provider.issuer, jwksUri: provider.jwksUri, algorithms: ['RS256'], httpClient }),
    }),
  nothing: (provider: FakeProvider) => oidc(provider, {}),
  nobody: (provider: FakeProvider) => oidc(provider, { introspectionUrl: provider.introspectionUrl, clientId: '' }),
}

function oidc(provider: FakeProvider, options: object): OidcClient {
  return new OidcClient(provider.oidcOptions({ httpClient, ...options }))
}

const startAll = (options: Omit<MountOptions, 'knex'> = {}) => start({ providers: kinds, options: unlimited, ...options })

function inHand(host: Mounted, key: string, body: unknown, headers: Record<string, string> = {}): Promise<HttpResponse> {
  return supertest(host.app)
    .post(`${host.prefix}/oauth/${key}/token`)
    .set({ 'Content-Type': 'application/json', ...headers })
    .send(JSON.stringify(body))
}

/** A token of this application, of somebody with this profile. */
function tokenFor(host: Mounted, key: string, profile: Record<string, unknown> = {}): string {
  const { provider } = host
  if (key === 'verifier') return provider.signJwt({ ...provider.idTokenClaims(), scope: 'openid', ...profile })
  return provider.issueAccessToken({ profile })
}

const asked = ({ provider }: Mounted) => provider.requests.splice(0).map(({ endpoint }) => endpoint)
const summary = ({ status, body }: HttpResponse) => [status, body.code]

let ids = 1_000
const githubPerson = () => {
  ids += 1
  return { id: ids, email: `github-${ids}@example.test`, name: 'Hub' }
}

describe('POST /oauth/:provider/token', () => {
  test.each([
    ['google', ['tokeninfo', 'userinfo']],
    ['github', ['application', 'user']],
    ['introspection', ['introspect', 'userinfo']],
    ['tokeninfo', ['tokeninfo', 'userinfo']],
    ['verifier', ['jwks']],
  ])('%s: the provider is asked whose application it is, then who it is; the answer is the login of the callback', async (key, calls) => {
    const host = await startAll()
    const person = key === 'github' ? githubPerson() : newPerson()
    const subject = 'id' in person ? String(person['id']) : person.sub

    const first = await inHand(host, key, { access_token: tokenFor(host, key, person) })
    const firstCalls = asked(host)
    const again = await inHand(host, key, { access_token: tokenFor(host, key, person) })

    expect([first.status, again.status, firstCalls]).toEqual([200, 200, calls])
    expect(first.body).toEqual({
      user_id: expect.any(String),
      access_token: expect.any(String),
      refresh_token: expect.any(String),
      mfa_required: false,
      mfa_token: null,
    })
    expect(again.body.user_id).toBe(first.body.user_id)
    expect(amrOf(first.body.access_token)).toEqual(['ext'])
    const listed = await supertest(host.app).get('/auth/oauth/accounts').set(bearer(first))
    expect(listed.body).toMatchObject([{ provider: key, subject, email: person['email'] }])
    expect(setCookies(first)).toEqual([])
  })

  test.each(['bearer', 'cookie', 'both'] as const)('delivery %s is the callback’s, cookies, attributes and body', async (tokenDelivery) => {
    const host = await startAll({ settings: { tokenDelivery, accessCookieName: 'at' } })
    const person = newPerson()
    const { callbackQuery } = await startLogin(host, host.browser(), { key: 'introspection', profile: person }).catch(() => ({
      callbackQuery: {},
    }))
    expect(callbackQuery).not.toEqual({})
    const browser = host.browser()
    const login = await startLogin(host, browser, { key: 'introspection', profile: person })
    const fromCallback = await browser.get('/auth/oauth/introspection/callback').query(login.callbackQuery)
    const fromToken = await inHand(host, 'introspection', { access_token: tokenFor(host, 'introspection', person) })

    const shape = (response: HttpResponse) => ({
      status: response.status,
      nulls: Object.entries(response.body).flatMap(([name, value]) => (value === null ? [name] : [])),
      cookies: setCookies(response)
        .filter((line) => !line.startsWith('oauth_state='))
        .map((line) => line.replace(/=[^;]*/, '').replace(/Expires=[^;]*/, '')),
    })
    expect(shape(fromToken)).toEqual(shape(fromCallback))
    expect(setCookies(fromToken)).toHaveLength(tokenDelivery === 'bearer' ? 0 : 4)
    if (tokenDelivery === 'both') expect(setCookies(fromToken)[1]).toContain(`at=${fromToken.body.access_token};`)
    expect((await host.browser().post('/auth/cookie/oauth/introspection/token').send({})).body).not.toHaveProperty('code')
  })

  test('in deliveries with cookies another site is refused before the provider is asked; native apps send neither header', async () => {
    const foreign = [{ Origin: 'https://evil.example' }, { 'Sec-Fetch-Site': 'cross-site' }, { 'Sec-Fetch-Site': 'same-site' }]
    for (const tokenDelivery of ['cookie', 'both', 'bearer'] as const) {
      const host = await startAll({ settings: { tokenDelivery } })
      for (const headers of foreign) {
        const response = await inHand(host, 'introspection', { access_token: tokenFor(host, 'introspection', newPerson()) }, headers)
        expect(summary(response)).toEqual(tokenDelivery === 'bearer' ? [200, undefined] : [403, 'CSRF_VALIDATION_FAILED'])
        if (tokenDelivery !== 'bearer') expect([asked(host), setCookies(response)]).toEqual([[], []])
      }
      const own = await inHand(host, 'introspection', { access_token: tokenFor(host, 'introspection', newPerson()) }, { Origin: baseUrl })
      expect(own.status).toBe(200)
    }
  })

  test('R-053: anything but 1 to 8,192 visible ASCII characters in the body is 422 without any call', async () => {
    const host = await startAll()
    const wrong = [
      '',
      ' ',
      'with blank',
      'a\r\nx: y',
      'a\n',
      'tab\t',
      'ü',
      '🔑',
      'a\u0000',
      'a\u007f',
      'a'.repeat(8193),
      7,
      null,
      true,
      ['a'],
      { a: 1 },
    ]
    for (const access_token of wrong) {
      const response = await inHand(host, 'introspection', { access_token })
      expect([access_token, ...summary(response), response.body.details.errors]).toEqual([
        access_token,
        422,
        'VALIDATION_ERROR',
        [{ path: 'access_token', rule: expect.any(String) }],
      ])
      if (typeof access_token === 'string' && access_token.length > 3) expect(response.text).not.toContain(access_token.trim())
    }
    expect((await inHand(host, 'introspection', {})).status).toBe(422)
    expect(asked(host)).toEqual([])

    const longest = await inHand(host, 'introspection', { access_token: '~'.repeat(8192) })
    expect([summary(longest), asked(host)]).toEqual([[401, 'OAUTH_TOKEN_REJECTED'], ['introspect']])
  })

  test('R-053: a token in the query, the path, a header or a form is no token', async () => {
    const host = await startAll()
    const token = tokenFor(host, 'introspection', newPerson())
    const path = '/auth/oauth/introspection/token'
    const app = supertest(host.app)
    expect((await app.post(`${path}?access_token=${token}`).send({})).status).toBe(422)
    expect((await app.post(path).set('Authorization', `Bearer ${token}`).send({})).status).toBe(422)
    expect((await app.post(`${path}/${token}`).send({})).status).toBe(404)
    expect((await app.post(path).type('form').send(`access_token=${token}`)).status).toBe(415)
    expect((await app.get(`${path}?access_token=${token}`)).status).toBe(405)
    expect(asked(host)).toEqual([])
  })

  test('an unknown provider is 404 OAUTH_PROVIDER_NOT_CONFIGURED', async () => {
    const host = await startAll()
    for (const key of ['other', '__proto__', 'constructor']) {
      const response = await inHand(host, key, { access_token: 'in-hand' })
      expect([summary(response), response.body.details]).toEqual([[404, 'OAUTH_PROVIDER_NOT_CONFIGURED'], { provider: key }])
    }
  })

  test('R-059: the 61st call of a client within 60 seconds is 429 with Retry-After, before the provider is asked', async () => {
    const host = await startAll({ options: {} })
    for (let call = 0; call < 60; call += 1) expect((await inHand(host, 'nothing', { access_token: 'in-hand' })).status).toBe(501)
    host.clock.advance(20)
    const refused = await inHand(host, 'introspection', { access_token: 'in-hand' })
    expect(summary(refused)).toEqual([429, 'TOO_MANY_REQUESTS'])
    expect([refused.headers['retry-after'], refused.body.details]).toEqual(['40', { retry_after_seconds: 40 }])
    expect(asked(host)).toEqual([])
    // A budget of its own: a callback of the same client is served.
    expect((await callBack(host, 'error=access_denied', { key: 'introspection' })).status).toBe(401)
    host.clock.advance(40)
    expect((await inHand(host, 'nothing', { access_token: 'in-hand' })).status).toBe(501)
  })
})

describe('R-050: the audience is settled before any profile and any account', () => {
  const spied = async (options: Omit<MountOptions, 'knex'> = {}) => {
    const spy = faultyStore(createKnexStore({ knex: opened().knex }))
    const host = await startAll({ ...options, options: { ...unlimited, store: spy.store } })
    spy.calls.length = 0
    return { host, spy }
  }

  test('R-050, R-055: mismatch, 501, rejected or 502: no call to the store, and none to userinfo', async () => {
    const { host, spy } = await spied()
    const { provider } = host
    const foreign = provider.issueAccessToken({ issuedTo: 'another-app' })
    const foreignJwt = provider.signJwt({ ...provider.idTokenClaims(), azp: 'another-app' })
    await inHand(host, 'verifier', { access_token: 'not-a-jwt' })
    const rows: [string, string, number, string, string[]][] = [
      ['google', foreign, 401, 'OAUTH_TOKEN_AUDIENCE_MISMATCH', ['tokeninfo']],
      ['github', foreign, 401, 'OAUTH_TOKEN_AUDIENCE_MISMATCH', ['application']],
      ['introspection', foreign, 401, 'OAUTH_TOKEN_AUDIENCE_MISMATCH', ['introspect']],
      ['tokeninfo', foreign, 401, 'OAUTH_TOKEN_AUDIENCE_MISMATCH', ['tokeninfo']],
      ['verifier', foreignJwt, 401, 'OAUTH_TOKEN_AUDIENCE_MISMATCH', ['jwks']],
      ['google', 'unknown', 401, 'OAUTH_TOKEN_REJECTED', ['tokeninfo']],
      ['github', 'unknown', 401, 'OAUTH_TOKEN_AUDIENCE_MISMATCH', ['application']],
      ['introspection', 'unknown', 401, 'OAUTH_TOKEN_REJECTED', ['introspect']],
      ['verifier', 'unknown', 401, 'OAUTH_TOKEN_REJECTED', []],
      ['nothing', foreign, 501, 'OAUTH_AUDIENCE_UNVERIFIABLE', []],
      ['nobody', provider.issueAccessToken(), 501, 'OAUTH_AUDIENCE_UNVERIFIABLE', []],
    ]
    for (const [key, access_token, status, code, calls] of rows) {
      const response = await inHand(host, key, { access_token })
      expect([key, code, ...summary(response), asked(host)]).toEqual([key, code, status, code, calls])
      if (status === 401) expect(response.body.details).toEqual({})
    }
    provider.on('introspect', answer(503, {}))
    expect(summary(await inHand(host, 'introspection', { access_token: foreign }))).toEqual([502, 'OAUTH_PROVIDER_UNAVAILABLE'])
    expect(asked(host)).toEqual(['introspect'])
    expect(spy.calls).toEqual([])
    expect(host.logs.text()).not.toContain(foreign)
  })

  test('a login asks the store only after userinfo has answered', async () => {
    const { host, spy } = await spied()
    let asleep: string[] | null = null
    host.provider.on('userinfo', (_request, response) => {
      asleep = [...spy.calls]
      return answer(200, { sub: 'subject-1' })(_request, response)
    })
    const response = await inHand(host, 'introspection', { access_token: tokenFor(host, 'introspection') })
    expect([summary(response), asleep]).toEqual([[422, 'OAUTH_EMAIL_MISSING'], []])
    expect(spy.calls[0]).toBe('identities.findWithUser')
  })
})

describe('R-052: the person the token was proven to be is the one of the profile', () => {
  test('a profile of another subject is 401 OAUTH_TOKEN_REJECTED, and no row is written', async () => {
    const host = await startAll()
    const { provider } = host
    const before = await rowCounts(host.knex)
    const cases: [string, 'userinfo' | 'user', unknown][] = [
      ['google', 'userinfo', { ...newPerson(), sub: 'somebody-else' }],
      ['tokeninfo', 'userinfo', { ...newPerson(), sub: 'subject-1 ' }],
      ['introspection', 'userinfo', { ...newPerson(), sub: 'SUBJECT-1' }],
      ['github', 'user', githubPerson()],
    ]
    for (const [key, endpoint, profile] of cases) {
      provider.on(endpoint, answer(200, profile))
      const response = await inHand(host, key, { access_token: provider.issueAccessToken() })
      expect([key, ...summary(response)]).toEqual([key, 401, 'OAUTH_TOKEN_REJECTED'])
      provider.on(endpoint, null)
    }
    expect(await rowCounts(host.knex)).toEqual(before)
  })

  test('a provider that names nobody with its proof is believed for its profile; a number and its digits are one', async () => {
    const host = await startAll()
    host.provider.on('introspect', answer(200, { active: true, client_id: host.provider.clientId }))
    expect((await inHand(host, 'introspection', { access_token: tokenFor(host, 'introspection', newPerson()) })).status).toBe(200)
    host.provider.on('introspect', answer(200, { active: true, client_id: host.provider.clientId, sub: 77 }))
    expect((await inHand(host, 'introspection', { access_token: tokenFor(host, 'introspection', newPerson({ sub: '77' })) })).status).toBe(
      200,
    )
    for (const sub of ['', {}, ['77'], false]) {
      host.provider.on('introspect', answer(200, { active: true, client_id: host.provider.clientId, sub }))
      const token = tokenFor(host, 'introspection', newPerson({ sub: '77' }))
      expect(summary(await inHand(host, 'introspection', { access_token: token }))).toEqual([401, 'OAUTH_TOKEN_REJECTED'])
    }
  })

  test('a subclass that spells subjects its own way is compared by `sub`', async () => {
    class Tenants extends OidcClient {
      protected override parseUser(claims: Record<string, unknown>, tokens: Parameters<OidcClient['fetchUser']>[0]): OAuthUser {
        return { ...super.parseUser(claims, tokens), subject: `tenant-7:${String(claims['sub'])}` }
      }
    }
    const host = await startAll({
      providers: { corp: (provider) => new Tenants(provider.oidcOptions({ introspectionUrl: provider.introspectionUrl })) },
    })
    const person = newPerson()
    const login = await inHand(host, 'corp', { access_token: tokenFor(host, 'corp', person) })
    expect(login.status).toBe(200)
    expect((await supertest(host.app).get('/auth/oauth/accounts').set(bearer(login))).body[0].subject).toBe(`tenant-7:${person.sub}`)
  })
})

describe('from the profile on it is the callback', () => {
  test('account rules, in the order of the specification', async () => {
    const host = await startAll({ settings: { oauthAllowAccountCreation: false } })
    const login = (profile: Record<string, unknown>) =>
      inHand(host, 'introspection', { access_token: tokenFor(host, 'introspection', profile) })
    const [taken, asleep] = [await addUser(host.knex), await addUser(host.knex, { isActive: false })]
    const inactive = newPerson()
    await addIdentity(host.knex, asleep.id, { provider: 'introspection', subject: inactive.sub })

    expect(summary(await login(inactive))).toEqual([401, 'OAUTH_ACCOUNT_INACTIVE'])
    expect(summary(await login(newPerson({ email: null })))).toEqual([422, 'OAUTH_EMAIL_MISSING'])
    expect(summary(await login(newPerson({ email: taken.email })))).toEqual([409, 'OAUTH_EMAIL_TAKEN'])
    expect(summary(await login(newPerson()))).toEqual([403, 'OAUTH_REGISTRATION_DISABLED'])
  })

  test('a created account without a name gets the placeholder of the locale that was asked for', async () => {
    const host = await startAll()
    const access_token = tokenFor(host, 'introspection', newPerson({ name: null }))
    const { body } = await supertest(host.app).post('/auth/oauth/introspection/token?lang=pt-BR').send({ access_token })
    expect((await host.knex('auth_users').where({ id: body.user_id }).first()).name).toBe('Você')
  })

  test('observers hear of the login, and of the reason when there is none', async () => {
    const host = await startAll()
    const told: unknown[] = []
    for (const name of ['signup', 'login', 'login.failed', 'provider.failed'] as const)
      host.auth.events.on(name, (payload) => told.push([name, payload]))
    const login = await inHand(host, 'introspection', { access_token: tokenFor(host, 'introspection', newPerson()) })
    await inHand(host, 'introspection', { access_token: 'unknown' })
    host.provider.on('introspect', answer(401, {}))
    await inHand(host, 'introspection', { access_token: 'unknown' })

    const [provider, userId] = ['introspection', login.body.user_id]
    const unknown = { userId: null, addressDigest: null, clientKey: '127.0.0.1' }
    expect(told).toEqual([
      ['signup', { userId, by: 'ext', provider }],
      ['login', expect.objectContaining({ userId, provider })],
      ['login.failed', { reason: 'OAUTH_TOKEN_REJECTED', provider, ...unknown }],
      ['provider.failed', { provider, code: 'OAUTH_ERROR', status: 401 }],
      ['login.failed', { reason: 'OAUTH_ERROR', provider, ...unknown }],
    ])
  })

  test('a userinfo that is down, 5xx or no JSON is 502 OAUTH_PROVIDER_UNAVAILABLE; one that refuses is 502 OAUTH_ERROR', async () => {
    const host = await startAll()
    const cases = { google: 'userinfo', github: 'user', introspection: 'userinfo' } as const
    const { '200 with an error': saysNo, ...unreadable } = hostileAnswers
    for (const [key, endpoint] of Object.entries(cases)) {
      const login = () => inHand(host, key, { access_token: host.provider.issueAccessToken() })
      for (const name of [
        'never answers',
        'a server error',
        'null',
        'HTML with 200',
        'a truncated body',
        'a redirect with a usable body',
      ]) {
        host.provider.on(endpoint, unreadable[name] ?? null)
        const response = await login()
        expect([key, name, ...summary(response), response.body.details.body]).toEqual([key, name, 502, 'OAUTH_PROVIDER_UNAVAILABLE', null])
      }
      host.provider.on(endpoint, saysNo ?? null)
      expect(summary(await login())).toEqual([502, 'OAUTH_ERROR'])
      host.provider.on(endpoint, (request, response) =>
        answer(403, { message: 'no', saw: request.headers.authorization })(request, response),
      )
      const refused = await login()
      expect([...summary(refused), refused.body.details.status]).toEqual([502, 'OAUTH_ERROR', 403])
      expect(refused.body.details.body).toMatch(/no.*removed/)
      host.provider.on(endpoint, null)
    }
  })
})

describe('a custom client', () => {
  const custom = (members: Partial<ProviderClient>, calls: string[] = []): ProviderClient => ({
    providerName: 'acme',
    clientId: 'app',
    authorizeUrl: 'https://acme.example/authorize',
    tokenUrl: 'https://acme.example/token',
    scopes: [],
    exchangeCode: () => Promise.reject(new Error('no code here')),
    async fetchUser({ accessToken }) {
      calls.push(`fetchUser ${accessToken}`)
      const email = `${accessToken}@example.test`
      return { provider: 'x', subject: accessToken, email, emailVerified: true, name: null, picture: null, raw: {} }
    },
    ...members,
  })

  test('must implement verifyTokenAudience: what it says decides, and without it the route refuses (501)', async () => {
    const rows: [string, Partial<ProviderClient>, number, string | undefined][] = [
      ['has no such method', {}, 501, 'OAUTH_AUDIENCE_UNVERIFIABLE'],
      ['has an empty client id', { clientId: '', verifyTokenAudience: async () => {} }, 501, 'OAUTH_AUDIENCE_UNVERIFIABLE'],
      ['resolves', { verifyTokenAudience: async () => {} }, 200, undefined],
      ['resolves with the subject', { verifyTokenAudience: async (token) => ({ subject: token }) }, 200, undefined],
      ['resolves with another subject', { verifyTokenAudience: async () => ({ subject: 'other' }) }, 401, 'OAUTH_TOKEN_REJECTED'],
      ['says false', { verifyTokenAudience: (async () => false) as never }, 401, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
      ['throws ours', { verifyTokenAudience: () => Promise.reject(new errors.OAuthTokenRejectedError()) }, 401, 'OAUTH_TOKEN_REJECTED'],
      [
        'throws at once',
        {
          verifyTokenAudience() {
            throw new TypeError('broken with secret-throws-at-once')
          },
        },
        502,
        'OAUTH_ERROR',
      ],
    ]
    for (const [row, members, status, code] of rows) {
      const calls: string[] = []
      const host = await startAll({ providers: { acme: custom(members, calls) } })
      const token = `secret-${row.replace(/\W/g, '-')}`
      const response = await inHand(host, 'acme', { access_token: token })
      expect([row, ...summary(response)]).toEqual([row, status, code])
      const isFetched = status === 200 || row === 'resolves with another subject'
      expect([row, calls]).toEqual([row, isFetched ? [`fetchUser ${token}`] : []])
      expect(host.logs.text() + (status === 200 ? '' : response.text)).not.toContain('secret-')
    }
  })

  test('fetchUser finds what was proven in tokens.proof', async () => {
    const seen: unknown[] = []
    const client = custom({ verifyTokenAudience: async () => ({ claims: { plan: 'gold' } }) })
    const host = await startAll({
      providers: {
        acme: custom({
          ...client,
          async fetchUser(tokens) {
            seen.push(tokens)
            return client.fetchUser(tokens)
          },
        }),
      },
    })
    expect((await inHand(host, 'acme', { access_token: 'proof-at-hand' })).status).toBe(200)
    expect(seen).toMatchObject([{ accessToken: 'proof-at-hand', tokenType: 'bearer', idToken: null, proof: { claims: { plan: 'gold' } } }])
  })
})

describe('without HTTP', () => {
  test('service.logInWithToken and linkWithToken do the same, and throw the same errors', async () => {
    const host = await startAll()
    const { service } = host.auth
    const person = newPerson()
    const token = (profile = person) => ({ provider: 'introspection', accessToken: tokenFor(host, 'introspection', profile) })

    const login = await service.logInWithToken(token())
    expect(login).toMatchObject({ kind: 'session', amr: ['ext'] })
    expect(await service.linkWithToken(login.userId, token())).toMatchObject({ provider: 'introspection', subject: person.sub })
    const google = { provider: 'google', accessToken: tokenFor(host, 'google', newPerson()) }
    expect(await service.linkWithToken(login.userId, google)).toMatchObject({ provider: 'google' })
    await expect(service.linkWithToken(login.userId, token(newPerson()))).rejects.toBeInstanceOf(errors.OAuthProviderAlreadyLinkedError)

    asked(host)
    const foreign = { provider: 'introspection', accessToken: host.provider.issueAccessToken({ issuedTo: 'another-app' }) }
    const refusals: [object, string][] = [
      [foreign, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
      [{ ...foreign, provider: 'nothing' }, 'OAUTH_AUDIENCE_UNVERIFIABLE'],
      [{ ...foreign, provider: 'other' }, 'OAUTH_PROVIDER_NOT_CONFIGURED'],
      [{ ...foreign, accessToken: 'with blank' }, 'VALIDATION_ERROR'],
      [{ provider: 'introspection' }, 'VALIDATION_ERROR'],
      [{}, 'OAUTH_PROVIDER_NOT_CONFIGURED'],
    ]
    for (const [input, code] of refusals) {
      await expect(service.logInWithToken(input as typeof foreign)).rejects.toMatchObject({ code }) // deliberately not what the type says
      await expect(service.linkWithToken(login.userId, input as typeof foreign)).rejects.toMatchObject({ code })
    }
    expect(asked(host)).toEqual(['introspect', 'introspect'])
  })
})
