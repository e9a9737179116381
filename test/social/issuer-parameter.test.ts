import { describe, expect, test } from 'vitest'
import { GoogleClient, OidcClient, type ProviderClient } from '../../src'
import { type Mounted, startLogin } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { testClock } from '../support/clock'
import { answer, type FakeProvider, startFakeProvider } from '../support/fake-provider'
import { beginLink, member } from './link-steps'
import { newPerson } from './redirect-steps'

/** RFC 9207: the callback says which provider it comes from. */
describe('R-028: the iss parameter of the callback', () => {
  const start = appPerTest()

  async function comeBack(host: Mounted, iss: Record<string, unknown>) {
    const browser = host.browser()
    const { callbackQuery } = await startLogin(host, browser, { profile: newPerson() })
    return browser.get('/auth/oauth/corp/callback').query({ ...callbackQuery, ...iss })
  }

  test("the provider's own issuer passes, and so does none where it does not promise one", async () => {
    const host = await start()
    expect((await comeBack(host, { iss: host.provider.issuer })).status).toBe(200)
    expect((await comeBack(host, {})).status).toBe(200)
    expect((await comeBack(host, { iss: '' })).status).toBe(200) // RFC 6749 section 3.1: an empty parameter is none
  })

  test.each<[string, (issuer: string) => unknown]>([
    ['another issuer', () => 'https://evil.example'],
    ['the issuer with a slash', (issuer) => `${issuer}/`],
    ['the issuer in capitals', (issuer) => issuer.toUpperCase()],
    ['the issuer twice', (issuer) => [issuer, issuer]],
  ])('%s is 502 OAUTH_ERROR; the code goes nowhere and nobody is logged in', async (_what, make) => {
    const host = await start()
    const failures: unknown[] = []
    host.auth.events.on('provider.failed', (payload) => failures.push(payload))

    const response = await comeBack(host, { iss: make(host.provider.issuer) })

    expect([response.status, response.body.code]).toEqual([502, 'OAUTH_ERROR'])
    expect(response.body.details).toEqual({ provider: 'corp', status: null, body: null })
    expect(host.provider.requests).toEqual([])
    expect(await host.knex('auth_users')).toEqual([])
    expect(failures).toEqual([{ provider: 'corp', code: 'OAUTH_ERROR', status: null }])
    expect(response.text).not.toContain('evil.example')
  })

  test('it spends the attempt it came with', async () => {
    const host = await start()
    const browser = host.browser()
    const { callbackQuery } = await startLogin(host, browser, { profile: newPerson() })
    await browser.get('/auth/oauth/corp/callback').query({ ...callbackQuery, iss: 'https://evil.example' })
    expect((await browser.get('/auth/oauth/corp/callback').query(callbackQuery)).body.code).toBe('OAUTH_STATE_MISMATCH')
  })

  test('it leaves the other attempts of the browser usable', async () => {
    const host = await start()
    const browser = host.browser()
    const other = await startLogin(host, browser, { profile: newPerson() })
    const mixedUp = await startLogin(host, browser, { profile: newPerson() })
    await browser.get('/auth/oauth/corp/callback').query({ ...mixedUp.callbackQuery, iss: 'https://evil.example' })
    expect((await browser.get('/auth/oauth/corp/callback').query(other.callbackQuery)).status).toBe(200)
  })

  test('a link attempt is checked alike', async () => {
    const host = await start({ providers: { corp: {}, acme: {} } })
    const ana = await member(host)
    const { query } = await beginLink(host, ana)
    const response = await ana.browser.get('/auth/oauth/acme/callback').query({ ...query, iss: 'https://evil.example' })
    expect([response.status, response.body.code]).toEqual([502, 'OAUTH_ERROR'])
    expect(await host.auth.service.listIdentities(ana.userId)).toHaveLength(1)
  })

  test('state and error come before it: without our state it is no question whose callback this is', async () => {
    const host = await start()
    const foreign = await host.browser().get('/auth/oauth/corp/callback').query({ code: 'c', state: 's', iss: 'https://evil.example' })
    expect(foreign.body.code).toBe('OAUTH_STATE_MISMATCH')
    const denied = await comeBack(host, { error: 'access_denied', iss: 'https://evil.example' })
    expect(denied.body.code).toBe('OAUTH_PROVIDER_DENIED')
  })

  test('where the issuer is not known it is not looked at', async () => {
    const provider = await startFakeProvider({ now: testClock().now })
    try {
      const { issuer: _unknown, ...options } = provider.oidcOptions({ providerName: 'corp' })
      const host = await start({ providers: { corp: new OidcClient(options) } })
      expect((await comeBack({ ...host, provider }, { iss: 'https://whoever.example' })).status).toBe(200)
    } finally {
      await provider.close()
    }
  })

  describe('where discovery says that the provider always sends it', () => {
    async function discovered(promise: unknown, play: (host: Mounted, client: OidcClient) => Promise<void>): Promise<void> {
      const provider: FakeProvider = await startFakeProvider({ now: testClock().now })
      const { issuer, authorizeUrl, tokenUrl, userinfoUrl, jwksUri, clientId, clientSecret } = provider
      const endpoints = {
        authorization_endpoint: authorizeUrl,
        token_endpoint: tokenUrl,
        userinfo_endpoint: userinfoUrl,
        jwks_uri: jwksUri,
      }
      provider.on('discovery', answer(200, { issuer, ...endpoints, authorization_response_iss_parameter_supported: promise }))
      try {
        const client = await OidcClient.discover(issuer, { clientId, clientSecret, providerName: 'corp' })
        await play({ ...(await start({ providers: { corp: client } })), provider }, client)
      } finally {
        await provider.close()
      }
    }

    test('its absence is 502 OAUTH_ERROR, and so is an empty one', async () => {
      await discovered(true, async (host, client) => {
        expect([client.issuer, client.requiresIssuerParameter]).toEqual([host.provider.issuer, true])
        for (const iss of [{}, { iss: '' }]) {
          const response = await comeBack(host, iss)
          expect([response.status, response.body.code]).toEqual([502, 'OAUTH_ERROR'])
        }
        expect(host.provider.requestsTo('token')).toEqual([])
      })
    })

    test('the right one passes, another is refused', async () => {
      await discovered(true, async (host) => {
        expect((await comeBack(host, { iss: host.provider.issuer })).status).toBe(200)
        expect((await comeBack(host, { iss: 'https://evil.example' })).status).toBe(502)
      })
    })

    test.each([[false], [undefined], ['true'], [1]])('a promise of %j is none', async (promise) => {
      await discovered(promise, async (host, client) => {
        expect(client.requiresIssuerParameter).toBe(false)
        expect((await comeBack(host, {})).status).toBe(200)
      })
    })
  })

  test("a client of the host's own can ask for the same", async () => {
    const client: ProviderClient = {
      providerName: 'corp',
      clientId: 'app',
      authorizeUrl: 'https://chat.example/authorize',
      tokenUrl: 'https://chat.example/token',
      scopes: [],
      issuer: 'https://chat.example',
      requiresIssuerParameter: true,
      exchangeCode: () => Promise.reject(new Error('the code must not be spent')),
      fetchUser: () => Promise.reject(new Error('nobody is asked')),
    }
    const host = await start({ providers: { corp: client } })
    const browser = host.browser()
    const login = await browser.get('/auth/oauth/corp/login')
    const state = new URL(String(login.headers['location'])).searchParams.get('state')
    const response = await browser.get('/auth/oauth/corp/callback').query({ code: 'c', state })
    expect([response.status, response.body.code]).toEqual([502, 'OAUTH_ERROR'])
    expect(host.logs.text()).not.toContain('must not be spent')
  })

  test('Google is known by its public issuer', () => {
    expect(new GoogleClient({ clientId: 'a', clientSecret: 'b' }).issuer).toBe('https://accounts.google.com')
  })
})
