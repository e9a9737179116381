import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { createAuthRouter, createKnexStore } from '../../src'
import { baseUrl, testSecret } from '../support/app'
import { databases } from '../support/databases'
import { challengeOf } from '../support/fake-provider'
import { linkTemplates } from '../support/mailbox'
import { begin, callBack, type HttpResponse, newPerson, onDatabase, providerCalls, setCookies } from './redirect-steps'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start, opened } = onDatabase(database, { memory: true })

describe('GET login', () => {
  test('it answers 302 to the authorize URL with the parameters of RFC 6749 and RFC 7636, and nothing else', async () => {
    const host = await start()

    const { response, location, params, state } = await begin(host)

    expect(location.startsWith(`${host.provider.authorizeUrl}?`)).toBe(true)
    expect(Object.fromEntries(params)).toEqual({
      response_type: 'code',
      client_id: host.provider.clientId,
      redirect_uri: `${baseUrl}/auth/oauth/corp/callback`,
      scope: 'openid email profile',
      state,
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
      nonce: expect.stringMatching(/^[\w-]{43}$/),
    })
    expect([...params]).toHaveLength(8)
    expect(response.text).toBe('')
    expect(providerCalls(host)).toBe(0)
  })

  test('the parameters of an authorize URL that has a query already are kept', async () => {
    const host = await start({ providers: { corp: { authorizeUrl: 'https://id.example.test/authorize?tenant=blue' } } })
    const response = await supertest(host.app).get('/auth/oauth/corp/login')
    const { origin, pathname, searchParams } = new URL(String(response.headers['location']))
    expect(origin + pathname).toBe('https://id.example.test/authorize')
    expect(searchParams.get('tenant')).toBe('blue')
    expect(searchParams.get('client_id')).toBe(host.provider.clientId)
  })

  test.each([
    'unknown',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'CORP',
    'corp%20',
    'a%00b',
    'accounts',
    'k'.repeat(10_000),
  ])('an unregistered provider (%s) is 404 OAUTH_PROVIDER_NOT_CONFIGURED at login and callback', async (key) => {
    const host = await start()
    for (const route of ['login', 'callback?error=access_denied', 'callback?code=c&state=s', 'callback']) {
      const response = await supertest(host.app).get(`/auth/oauth/${key}/${route}`)
      expect(response.status).toBe(404)
      expect(response.body.code).toBe('OAUTH_PROVIDER_NOT_CONFIGURED')
      expect(response.body.details).toEqual({ provider: decodeURIComponent(key).slice(0, 50) })
      expect(response.headers['set-cookie']).toBeUndefined()
    }
  })

  test('R-031: nothing in the query or the headers of login changes the authorization request', async () => {
    const host = await start()
    const plain = Object.fromEntries((await begin(host)).params)

    const { params } = await begin(host, {
      query: {
        redirect_uri: 'https://evil.example/cb',
        callbackURL: 'https://evil.example/cb',
        client_id: 'evil',
        scope: 'admin',
        prompt: 'none',
        response_type: 'token',
        response_mode: 'fragment',
        state: 'fixed',
        nonce: 'fixed',
        code_challenge: 'fixed',
        code: 'fixed',
        error: 'access_denied',
        lang: 'pt-BR',
      },
      headers: { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'http', Forwarded: 'host=evil.example' },
    })

    const changing = ['state', 'nonce', 'code_challenge']
    for (const [name, value] of params) {
      if (changing.includes(name)) expect(value).toMatch(/^[\w-]{43}$/)
      else expect(value).toBe(plain[name])
    }
    expect([...params.keys()].sort()).toEqual(Object.keys(plain).sort())
  })
})

describe('the redirect URI', () => {
  test('R-004: it is base URL, prefix, provider and callback, byte for byte, whatever Host and X-Forwarded-Host say', async () => {
    const host = await start({ prefix: '/api/v1/auth', providers: { 'oidc:corp-1': {} } })
    host.app.set('trust proxy', 1)

    const { params, query, cookie } = await begin(host, {
      key: 'oidc:corp-1',
      headers: { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'http' },
      profile: newPerson(),
    })

    const redirectUri = `${baseUrl}/api/v1/auth/oauth/oidc:corp-1/callback`
    expect(params.get('redirect_uri')).toBe(redirectUri)
    const headers = { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example' }
    expect((await callBack(host, query, { key: 'oidc:corp-1', cookie, headers })).status).toBe(200)
    expect(host.provider.requestsTo('token')[0]?.form.get('redirect_uri')).toBe(redirectUri)
  })

  test("a client's own redirectUri is used as it is, at login and at the exchange", async () => {
    const redirectUri = 'https://login.example.test/callback/?tenant=1'
    const host = await start({ providers: { corp: { redirectUri } } })

    const { params, query, cookie } = await begin(host, { profile: newPerson() })

    expect(params.get('redirect_uri')).toBe(redirectUri)
    expect((await callBack(host, query, { cookie })).status).toBe(200)
    expect(host.provider.requestsTo('token')[0]?.form.get('redirect_uri')).toBe(redirectUri)
  })

  test('R-004: without a base URL and without a redirectUri of its own there is no router', () => {
    const host = { providerName: 'corp', clientId: 'c', authorizeUrl: 'https://a.example', tokenUrl: 'https://a.example', scopes: [] }
    const client = { ...host, exchangeCode: () => Promise.reject(new Error()), fetchUser: () => Promise.reject(new Error()) }
    const build = (redirectUri?: string) =>
      createAuthRouter({
        settings: { jwtSecret: testSecret, oauthEnabled: true, ...linkTemplates },
        store: createKnexStore({ knex: opened().knex }),
        providers: { corp: { ...client, ...(redirectUri ? { redirectUri } : {}) } },
        environment: 'test',
        logger: { info() {}, warn() {}, error() {} },
      })
    expect(() => build()).toThrow(/oauthRedirectBaseUrl/)
    expect(() => build('https://app.example.test/callback')).not.toThrow()
  })
})

describe('PKCE and nonce', () => {
  test('R-024: the provider gets an S256 challenge, then the verifier of 43 characters it is the hash of', async () => {
    const host = await start()
    const { params, query, cookie } = await begin(host, { profile: newPerson() })
    expect((await callBack(host, query, { cookie })).status).toBe(200)

    const verifier = String(host.provider.requestsTo('token')[0]?.form.get('code_verifier'))
    expect(verifier).toMatch(/^[\w-]{43}$/)
    expect(challengeOf(verifier)).toBe(params.get('code_challenge'))
  })

  test('R-024: the verifier is in no cookie, URL or answer the browser sees, and new for each attempt', async () => {
    const host = await start()
    const seen: string[] = []
    const verifiers = new Set<string>()
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const { response, location, query, cookie } = await begin(host, { profile: newPerson() })
      const called = await callBack(host, query, { cookie })
      expect(called.status).toBe(200)
      seen.push(location, ...setCookies(response), ...setCookies(called), response.text, called.text, JSON.stringify(called.headers))
      verifiers.add(String(host.provider.requestsTo('token').at(-1)?.form.get('code_verifier')))
    }
    expect(verifiers.size).toBe(3)
    for (const verifier of verifiers) expect(seen.join('\n')).not.toContain(verifier)
  })

  test('R-024: a code stolen from one attempt is refused in another: the verifier is not its own', async () => {
    const host = await start()
    const victim = await begin(host, { profile: newPerson() })
    const thief = await begin(host, { profile: newPerson() })

    const response = await callBack(host, { state: thief.state, code: String(victim.query['code']) }, thief)

    expect(response.status).toBe(502)
    expect(response.body).toMatchObject({ code: 'OAUTH_ERROR', details: { provider: 'corp', status: 400 } })
  })

  test('R-024: only the provider whose client says pkce: false goes without', async () => {
    const host = await start({ providers: { old: { pkce: false }, corp: {} } })

    const old = await begin(host, { key: 'old', profile: newPerson() })
    expect(old.params.has('code_challenge')).toBe(false)
    expect(old.params.has('code_challenge_method')).toBe(false)
    expect((await callBack(host, old.query, { key: 'old', cookie: old.cookie })).status).toBe(200)
    expect(host.provider.requestsTo('token')[0]?.form.has('code_verifier')).toBe(false)
    expect((await begin(host, { key: 'corp' })).params.get('code_challenge_method')).toBe('S256')
  })

  test.each<[string, (claims: Record<string, unknown>) => Record<string, unknown>]>([
    ['another nonce', (claims) => ({ ...claims, nonce: 'another' })],
    ['no nonce', ({ nonce: _dropped, ...claims }) => claims],
    ['a nonce that is no string', (claims) => ({ ...claims, nonce: [claims['nonce']] })],
  ])('R-025: an id_token with %s is refused, and no row is written', async (_case, change) => {
    const host = await start()
    host.provider.idToken = change
    const person = newPerson()
    const { query, cookie } = await begin(host, { profile: person })

    expectRefused(await callBack(host, query, { cookie }))
    expect(await host.knex('auth_users').where({ email: person.email })).toEqual([])
  })

  test('R-025: an id_token of another attempt is refused: its nonce is not this one', async () => {
    const host = await start()
    const person = newPerson()
    const [first, second] = [await begin(host, { profile: person }), await begin(host, { profile: person })]
    host.provider.idToken = (claims) => ({ ...claims, nonce: first.params.get('nonce') })
    expectRefused(await callBack(host, second.query, second))
    expect((await callBack(host, first.query, first)).status).toBe(200)
  })

  test('R-025: without scope openid no nonce is sent, and none is asked of the answer', async () => {
    const host = await start({ providers: { corp: { scopes: ['email', 'profile'] } } })
    const { params, query, cookie } = await begin(host, { profile: newPerson() })
    expect(params.has('nonce')).toBe(false)
    expect(params.get('scope')).toBe('email profile')
    expect((await callBack(host, query, { cookie })).status).toBe(200)
  })
})

function expectRefused(response: HttpResponse): void {
  expect(response.status, response.text).toBe(502)
  expect(response.body).toMatchObject({ code: 'OAUTH_ERROR', details: { provider: 'corp' } })
}
