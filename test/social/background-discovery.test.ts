import { afterEach, describe, expect, test, vi } from 'vitest'
import { createHttpClient, type HttpClient, OidcClient, type OidcClientOptions } from '../../src'
import { createBackgroundDiscovery } from '../../src/providers/discovery'
import type { Mounted } from '../support/app'
import { databases } from '../support/databases'
import { answer, type FakeProvider } from '../support/fake-provider'
import { begin, callBack, onDatabase } from './redirect-steps'

/** Section 19, details 19.6: discovery does not tie the start of the app to the provider. */

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onDatabase(database, { memory: true })

const document = (provider: FakeProvider, changes: object = {}) => ({
  issuer: provider.issuer,
  authorization_endpoint: provider.authorizeUrl,
  token_endpoint: provider.tokenUrl,
  userinfo_endpoint: provider.userinfoUrl,
  jwks_uri: provider.jwksUri,
  token_endpoint_auth_methods_supported: ['client_secret_post'],
  ...changes,
})

type Handler = Parameters<FakeProvider['on']>[1]

/** A host whose provider answers so to the first reading. */
const startWith = (handler: (provider: FakeProvider) => Handler, options: Partial<OidcClientOptions> = {}): Promise<Mounted> =>
  start({
    providers: {
      corp: (provider) => {
        provider.on('discovery', handler(provider))
        const { issuer, clientId, clientSecret } = provider
        return new OidcClient({ issuer, clientId, clientSecret, providerName: 'corp', ...options })
      },
    },
  })

const readings = ({ provider }: Mounted) => provider.requestsTo('discovery').length
const notices = ({ logs }: Mounted) => logs.entries.filter(({ message }) => message.includes('is not ready'))
const login = (host: Mounted) => host.browser().get('/auth/oauth/corp/login')

async function logsIn(host: Mounted): Promise<void> {
  const { query, cookie } = await begin(host)
  expect((await callBack(host, query, { cookie })).status).toBe(200)
}

test('a client of an issuer alone discovers in the background, once, and people sign in', async () => {
  const host = await startWith((provider) => answer(200, document(provider)))
  await expect.poll(() => readings(host)).toBe(1)
  await logsIn(host)
  await logsIn(host)
  expect([readings(host), notices(host)]).toEqual([1, []])
})

test('a provider that is down at the start: one warning, logins are 502, and the first one after it came back works', async () => {
  const host = await startWith(() => answer(503, 'down'))
  await expect.poll(() => notices(host).length).toBe(1)
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const { status, body } = await login(host)
    expect([status, body.code, body.details]).toEqual([502, 'OAUTH_PROVIDER_UNAVAILABLE', { provider: 'corp', status: null, body: null }])
  }
  expect(notices(host)).toMatchObject([
    { level: 'warn', fields: { provider: 'corp', reason: expect.stringContaining('(providers.corp)') } },
  ])

  host.provider.on('discovery', answer(200, document(host.provider)))
  await logsIn(host)
})

test('a document of another issuer is an error in the log, and a 502 until it is mended', async () => {
  const host = await startWith((provider) => answer(200, document(provider, { issuer: 'https://other.example' })))
  await expect.poll(() => notices(host).length).toBe(1)
  expect(notices(host)).toMatchObject([
    { level: 'error', fields: { provider: 'corp', reason: expect.stringContaining('names another issuer') } },
  ])
  expect((await login(host)).body.code).toBe('OAUTH_PROVIDER_UNAVAILABLE')

  host.provider.on('discovery', answer(200, document(host.provider)))
  await logsIn(host)
})

test('people who come while the description is read share one reading', async () => {
  let goOn: () => void = () => undefined
  const held = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const host = await startWith((provider) => async (request, response) => {
    await held
    return answer(200, document(provider))(request, response)
  })
  const logins = Promise.all(Array.from({ length: 5 }, () => login(host).then(({ status }) => status)))
  await expect.poll(() => readings(host)).toBe(1)
  goOn()
  expect(await logins).toEqual([302, 302, 302, 302, 302])
  expect(readings(host)).toBe(1)
})

test('a callback after a restart waits for the description too, and a promised iss is required', async () => {
  const host = await startWith((provider) => answer(200, document(provider, { authorization_response_iss_parameter_supported: true })))
  const { query, cookie } = await begin(host)
  const restarted = await start({
    knex: host.knex,
    providers: {
      corp: () => new OidcClient({ issuer: host.provider.issuer, clientId: 'client-1', clientSecret: host.provider.clientSecret }),
    },
  })
  const response = await callBack(restarted, query, { cookie })
  expect([response.status, response.body.code]).toEqual([502, 'OAUTH_ERROR'])
  expect(host.provider.requestsTo('token')).toEqual([])
})

test('what the host names wins over the description', async () => {
  const host = await startWith((provider) => answer(200, document(provider, { userinfo_endpoint: `${provider.issuer}/nowhere` })))
  await host.close()
  const named = await start({
    providers: {
      corp: (provider) => {
        provider.on('discovery', answer(200, document(provider, { userinfo_endpoint: `${provider.issuer}/nowhere` })))
        const { issuer, clientId, clientSecret, userinfoUrl } = provider
        return new OidcClient({ issuer, clientId, clientSecret, userinfoUrl, clientAuthentication: 'client_secret_basic' })
      },
    },
  })
  await logsIn(named)
  expect(named.provider.requestsTo('userinfo').length).toBe(1)
  expect(named.provider.requestsTo('token')[0]?.headers.authorization).toMatch(/^Basic /)
})

describe('a redirect', () => {
  const discover = (host: Mounted, httpClient: HttpClient) =>
    OidcClient.discover(host.provider.issuer, { clientId: 'c', clientSecret: 's', httpClient })

  test.each([
    ['of the same origin', '/elsewhere', 2, true],
    ['to a relative address', 'elsewhere', 2, true],
    ['to another origin', 'https://other.example/', 1, false],
    ['to what is no address', 'https://', 1, false],
    ['without an address', undefined, 1, false],
  ])('%s is followed once, or not at all', async (_what, location, calls, works) => {
    const host = await start()
    const asked: string[] = []
    const httpClient: HttpClient = async (url) => {
      asked.push(url)
      const isFirst = asked.length === 1
      return isFirst
        ? { status: 302, headers: location === undefined ? {} : { location }, body: '' }
        : { status: 200, headers: {}, body: JSON.stringify(document(host.provider)) }
    }
    const outcome = await discover(host, httpClient).then(
      () => true,
      () => false,
    )
    expect([outcome, asked.length]).toEqual([works, calls])
  })

  test('that leads to another one ends there', async () => {
    const host = await start()
    const httpClient: HttpClient = async () => ({ status: 302, headers: { location: '/again' }, body: '' })
    await expect(discover(host, httpClient)).rejects.toMatchObject({ code: 'OAUTH_PROVIDER_UNAVAILABLE' })
  })
})

describe('the times of trying again', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  test('are 1, 2, 4 … 60 seconds, on the system’s clock; a login in between tries at once, and ends them', async () => {
    vi.useFakeTimers()
    const began = Date.now()
    const at: number[] = []
    let isUp = false
    const discovery = createBackgroundDiscovery(async () => {
      at.push((Date.now() - began) / 1000)
      if (!isUp) throw new Error('down')
      return 'found'
    }, null)
    const failures: unknown[] = []
    discovery.begin((error) => failures.push(error))
    discovery.begin(() => failures.push('twice'))
    await vi.advanceTimersByTimeAsync(183_000)
    expect(at).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183])
    expect(failures.length).toBe(9)

    await expect(discovery.find()).rejects.toThrow('down')
    isUp = true
    await expect(Promise.all([discovery.find(), discovery.find()])).resolves.toEqual(['found', 'found'])
    await vi.advanceTimersByTimeAsync(600_000)
    expect(at.length).toBe(11)
  })
})

test.each([
  ['neither issuer nor endpoints', { issuer: undefined }, /authorizeUrl/],
  ['half of the endpoints', { tokenUrl: 'https://idp.example/token' }, /authorizeUrl/],
  ['an insecure issuer', { issuer: 'http://idp.example' }, /issuer/],
])('%s is refused at construction', (_what, options, message) => {
  const build = () =>
    new OidcClient({
      issuer: 'https://idp.example',
      clientId: 'c',
      clientSecret: 's',
      httpClient: createHttpClient(),
      ...options,
    } as OidcClientOptions)
  expect(build).toThrow(message)
})
