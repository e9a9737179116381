import { generateKeyPairSync } from 'node:crypto'
import type { ClientMetadata } from 'oidc-provider'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createHttpClient, type HttpClient, OidcClient, type OidcClientOptions } from '../../src'
import { type HttpResponse, onDatabase } from '../social/redirect-steps'
import { type Browser, baseUrl, type Mounted, setCookieOf } from '../support/app'
import { databases } from '../support/databases'
import { clientSecret, type OpenidProvider, person, startOpenidProvider } from '../support/openid-provider'

/**
 * Our side of OpenID Connect against a certified provider that insists: PKCE always, claims only where the standard puts them,
 * `iss` in every answer (RFC 9207), one algorithm per client.
 */
const [database] = await databases()
if (!database) throw new Error('no database')
const host = onDatabase(database, { memory: true })
/** The provider knows no clock but the system's. */
const start = (given: Parameters<typeof host.start>[0]) => host.start({ ...given, options: { now: () => new Date() } })

const authentications = ['client_secret_post', 'client_secret_basic'] as const
const algorithms = ['RS256', 'ES256', 'PS256', 'EdDSA'] as const
type Authentication = (typeof authentications)[number]

const keys = {
  RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  PS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: generateKeyPairSync('ed25519'),
}
const jwks = {
  keys: Object.entries(keys).map(([alg, { privateKey }]) => ({ ...privateKey.export({ format: 'jwk' }), alg, kid: alg, use: 'sig' })),
}

const redirectUri = `${baseUrl}/auth/oauth/corp/callback`
const idOf = (authentication: Authentication, algorithm: string) => `${authentication}-${algorithm}`

function registered(id: string, authentication: Authentication, more: Partial<ClientMetadata> = {}): ClientMetadata {
  return { client_id: id, client_secret: clientSecret, redirect_uris: [redirectUri], token_endpoint_auth_method: authentication, ...more }
}

let provider: OpenidProvider
/** The algorithms of the id_tokens that came, by the provider's own word. */
const came: unknown[] = []
const httpClient: HttpClient = async (url, request) => {
  const answer = await createHttpClient()(url, request)
  if (new URL(url).pathname === '/token') came.push(algorithmOf(String(answer.body)))
  return answer
}

function algorithmOf(body: string): unknown {
  const { id_token: idToken = '' } = JSON.parse(body) as { id_token?: string } // a token endpoint answers JSON
  return idToken === '' ? null : JSON.parse(Buffer.from(idToken.split('.')[0] ?? '', 'base64url').toString()).alg
}

beforeAll(async () => {
  const matrix = authentications.flatMap((authentication) =>
    algorithms.map((alg) => registered(idOf(authentication, alg), authentication, { id_token_signed_response_alg: alg })),
  )
  provider = await startOpenidProvider({
    clients: [
      ...matrix,
      registered('symmetric', 'client_secret_post', { id_token_signed_response_alg: 'HS256' }),
      registered('signed-userinfo', 'client_secret_post', { userinfo_signed_response_alg: 'RS256' }),
    ],
    jwks,
    conformIdTokenClaims: true,
    enabledJWA: { idTokenSigningAlgValues: [...algorithms, 'HS256'], userinfoSigningAlgValues: ['RS256'] },
    features: { jwtUserinfo: { enabled: true }, introspection: { enabled: true } },
  })
})
afterAll(() => provider.close())
beforeEach(() => {
  came.length = 0
  provider.requests.length = 0
})

const discover = (clientId: string, secret = clientSecret) =>
  OidcClient.discover(provider.issuer, { clientId, clientSecret: secret, clientAuthentication: 'client_secret_post', httpClient })

/** Every endpoint by name, nothing discovered. */
async function named(clientId: string, changes: Partial<OidcClientOptions> = {}): Promise<OidcClient> {
  const { authorizeUrl, tokenUrl } = await discover(clientId)
  const { issuer } = provider
  const endpoints = { authorizeUrl, tokenUrl, issuer, jwksUri: `${issuer}/jwks`, userinfoUrl: `${issuer}/me` }
  return new OidcClient({ clientId, clientSecret, httpClient, ...endpoints, ...changes })
}

/** Login, the provider's pages, and the callback with what came back, or a change of it. */
async function signInThrough(
  host: Mounted,
  { browser = host.browser(), answer, change = () => undefined }: Partial<Dance> = {},
): Promise<HttpResponse> {
  const login = await browser.get('/auth/oauth/corp/login')
  const back = await provider.visit(String(login.headers['location']), answer)
  expect(`${back.origin}${back.pathname}`).toBe(redirectUri)
  change(back.searchParams)
  return browser.get(`/auth/oauth/corp/callback?${back.searchParams}`)
}

interface Dance {
  browser: Browser
  answer: { error: string }
  change: (query: URLSearchParams) => void
}

const refused = { code: 'OAUTH_ERROR' }

describe.each(authentications)('with %s', (authentication) => {
  test.each(algorithms)(
    'an id_token under %s ends in a session, discovered or named; a second login is the same account',
    async (algorithm) => {
      const clientId = idOf(authentication, algorithm)
      const discovered = await start({ providers: { corp: await discoverWith(authentication, clientId) } })
      const first = await signInThrough(discovered)
      const again = await signInThrough(discovered)
      const byName = await start({ providers: { corp: await named(clientId, { clientAuthentication: authentication }) } })
      const third = await signInThrough(byName)

      expect([first.status, again.status, third.status]).toEqual([200, 200, 200])
      expect(came).toEqual([algorithm, algorithm, algorithm])
      expect([again.body.user_id, third.body.user_id]).toEqual([first.body.user_id, first.body.user_id])
      const me = await discovered.browser().get('/auth/me').set('Authorization', `Bearer ${first.body.access_token}`)
      expect(me.body).toMatchObject({ email: person.email.toLowerCase(), name: person.name })
    },
  )

  test('a wrong secret is a 502 with the provider’s answer, and nobody is signed in', async () => {
    const clientId = idOf(authentication, 'RS256')
    const host = await start({
      providers: { corp: await named(clientId, { clientAuthentication: authentication, clientSecret: 'wrong' }) },
    })
    const response = await signInThrough(host)

    expect(response.status).toBe(502)
    expect(response.body).toMatchObject({ ...refused, details: { status: 401, body: expect.stringContaining('invalid_client') } })
    const [line] = host.logs.entries.filter(({ message }) => message.endsWith('#client-refused'))
    expect(line?.fields).toMatchObject({ provider: 'corp', error: 'invalid_client' })
    expect(setCookieOf(response, 'access_token')).toBeNull()
  })

  test('a token in hand is asked about by introspection, with the same credentials', async () => {
    const client = await named(idOf(authentication, 'ES256'), {
      clientAuthentication: authentication,
      introspectionUrl: `${provider.issuer}/token/introspection`,
    })
    const host = await start({ providers: { corp: client } })
    const codeVerifier = 'a'.repeat(43)
    const code = await provider.approve(client, { redirectUri, nonce: 'n', codeVerifier })
    const { accessToken } = await client.exchangeCode({ code, redirectUri, codeVerifier, nonce: 'n' })
    provider.requests.length = 0
    const send = (token: string) => host.browser().post('/auth/oauth/corp/token').send({ access_token: token })

    const response = await send(accessToken)
    expect([response.status, response.body.code]).toEqual([200, undefined])
    expect(provider.requests).toEqual(['/token/introspection', '/me'])
    expect((await send(`${accessToken.slice(0, -1)}~`)).body.code).toBe('OAUTH_TOKEN_REJECTED')
  })
})

/** A provider that lists both ways is told in the header, unless the host says otherwise. */
function discoverWith(authentication: Authentication, clientId: string): Promise<OidcClient> {
  if (authentication === 'client_secret_post') return discover(clientId)
  return OidcClient.discover(provider.issuer, { clientId, clientSecret, httpClient })
}

const clientId = idOf('client_secret_post', 'RS256')

test('with PKCE switched off the provider, which requires it, sends the person back without a code', async () => {
  const host = await start({ providers: { corp: await named(clientId, { pkce: false }) } })
  const response = await signInThrough(host)

  expect([response.status, response.body.code]).toEqual([401, 'OAUTH_PROVIDER_DENIED'])
  expect(provider.requests).not.toContain('/token')
})

test('a person who says no comes back as 401 OAUTH_PROVIDER_DENIED', async () => {
  const host = await start({ providers: { corp: await discover(clientId) } })
  const response = await signInThrough(host, { answer: { error: 'access_denied' } })

  expect([response.status, response.body.code]).toEqual([401, 'OAUTH_PROVIDER_DENIED'])
})

test.each<[string, (query: URLSearchParams) => void]>([
  ['missing', (query) => query.delete('iss')],
  ['of another issuer', (query) => query.set('iss', 'https://evil.example')],
  ['sent twice', (query) => query.append('iss', 'https://evil.example')],
])('RFC 9207: an iss that is %s ends the login before the code is sent anywhere', async (_what, change) => {
  const host = await start({ providers: { corp: await discover(clientId) } })
  const response = await signInThrough(host, { change })

  expect([response.status, response.body.code]).toEqual([502, 'OAUTH_ERROR'])
  expect(provider.requests).not.toContain('/token')
})

test('the code of one attempt in the callback of another is refused by the provider: its verifier and its nonce are not these', async () => {
  const host = await start({ providers: { corp: await discover(clientId) } })
  const login = await host.browser().get('/auth/oauth/corp/login')
  const { searchParams } = await provider.visit(String(login.headers['location']))
  const response = await signInThrough(host, { change: (query) => query.set('code', String(searchParams.get('code'))) })

  expect(response.status).toBe(502)
  expect(response.body).toMatchObject({ ...refused, details: { status: 400, body: expect.stringContaining('invalid_grant') } })
})

test('a client registered as symmetric gets id_tokens under HS256, which we never take: 502, and nobody is signed in', async () => {
  const host = await start({ providers: { corp: await discover('symmetric') } })
  const response = await signInThrough(host)

  expect(came).toEqual(['HS256'])
  expect(response.status).toBe(502)
  expect(response.body).toMatchObject({ ...refused, details: { provider: 'corp', status: null } })
})

test('a signed userinfo (application/jwt) is verified by the key set, and its claims are the profile', async () => {
  const host = await start({ providers: { corp: await discover('signed-userinfo') } })
  const response = await signInThrough(host)

  expect(provider.requests).toContain('/me')
  expect([response.status, response.body.code]).toEqual([200, undefined])
  const me = await host.browser().get('/auth/me').set('Authorization', `Bearer ${response.body.access_token}`)
  expect(me.body).toMatchObject({ email: person.email.toLowerCase(), name: person.name })
})

test('without userinfo the profile is the id_token’s, where the provider puts it there', async () => {
  provider.use({ conformIdTokenClaims: false })
  const { issuer } = provider
  const { authorizeUrl, tokenUrl } = await discover(clientId)
  const corp = new OidcClient({ clientId, clientSecret, httpClient, authorizeUrl, tokenUrl, issuer, jwksUri: `${issuer}/jwks` })
  const host = await start({ providers: { corp } })
  const response = await signInThrough(host)
  provider.use({})

  expect([response.status, response.body.code]).toEqual([200, undefined])
  expect(provider.requests).not.toContain('/me')
})
