import { createPublicKey, generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import type { ClientMetadata, Configuration } from 'oidc-provider'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { OidcClient, type OidcClientOptions } from '../../src'
import { baseUrl, type Mounted } from '../support/app'
import { databases } from '../support/databases'
import { clientSecret, type OpenidProvider, person, startOpenidProvider } from '../support/openid-provider'
import { type HttpResponse, onDatabase } from './redirect-steps'

/**
 * Section 19: logins by a certified provider that nobody here wrote, in each combination of id_token signature and userinfo, under every
 * way of authenticating, with pushed requests and without, discovered in the background. The provider insists on each.
 */
const [database] = await databases()
if (!database) throw new Error('no database')
const host = onDatabase(database, { memory: true })
/** The provider knows no clock but the system's. */
const start = (corp: () => OidcClient) => host.start({ providers: { corp }, options: { now: () => new Date() } })

const redirectUri = `${baseUrl}/auth/oauth/corp/callback`
const algorithms = ['RS256', 'RS512', 'PS256', 'PS384', 'ES256', 'ES384', 'EdDSA'] as const
const userinfos = ['JSON', 'RS256', 'ES256', 'EdDSA'] as const
const keyOf = (alg: string): KeyObject => {
  if (alg === 'EdDSA') return generateKeyPairSync('ed25519').privateKey
  if (alg.startsWith('ES')) return generateKeyPairSync('ec', { namedCurve: `P-${alg.slice(2)}` }).privateKey
  return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
}
const clientKeys = { RS256: keyOf('RS256'), PS256: keyOf('PS256'), ES256: keyOf('ES256'), EdDSA: keyOf('EdDSA') }
const publicJwk = (key: KeyObject) => ({ ...createPublicKey(key).export({ format: 'jwk' }), use: 'sig' })

interface Way {
  name: string
  metadata: Partial<ClientMetadata>
  options: Partial<OidcClientOptions>
}

const ways: Way[] = [
  ...(['client_secret_basic', 'client_secret_post'] as const).map((way) => ({
    name: way,
    metadata: { client_secret: clientSecret, token_endpoint_auth_method: way },
    options: { clientSecret, clientAuthentication: way },
  })),
  { name: 'none', metadata: { token_endpoint_auth_method: 'none' }, options: { clientAuthentication: 'none' } },
  ...(Object.entries(clientKeys) as [keyof typeof clientKeys, KeyObject][]).map(
    ([alg, privateKey]): Way => ({
      name: `private_key_jwt by ${alg}`,
      metadata: {
        token_endpoint_auth_method: 'private_key_jwt',
        token_endpoint_auth_signing_alg: alg,
        jwks: { keys: [publicJwk(privateKey)] },
      },
      options: { clientAuthentication: 'private_key_jwt', clientKey: { privateKey, alg } },
    }),
  ),
]

interface Case extends Way {
  clientId: string
  alg: (typeof algorithms)[number]
  userinfo: (typeof userinfos)[number]
  par: boolean
}

const cases = algorithms.flatMap((alg, row) =>
  userinfos.map((userinfo, column): Case => {
    const index = row * userinfos.length + column
    const way = ways[index % ways.length] as Way // the remainder is within the list
    return { ...way, clientId: `client-${index}`, alg, userinfo, par: (row + column) % 2 === 1 }
  }),
)

const registered = ({ clientId, alg, userinfo, par, metadata }: Case): ClientMetadata => ({
  client_id: clientId,
  redirect_uris: [redirectUri],
  id_token_signed_response_alg: alg,
  ...(userinfo !== 'JSON' && { userinfo_signed_response_alg: userinfo }),
  ...(par && { require_pushed_authorization_requests: true }),
  ...metadata,
})
const web = { redirect_uris: [redirectUri], client_secret: clientSecret }
const signing = [...algorithms, 'HS256'] as const
const features = {
  jwtUserinfo: { enabled: true },
  encryption: { enabled: true },
  pushedAuthorizationRequests: { enabled: true },
  introspection: { enabled: true },
}
const configuration = (): Configuration => ({
  clients: [
    ...cases.map(registered),
    { ...web, client_id: 'plain' },
    {
      ...web,
      client_id: 'encrypted',
      id_token_encrypted_response_alg: 'RSA-OAEP',
      jwks: { keys: [{ ...publicJwk(clientKeys.RS256), use: 'enc' }] },
    },
  ],
  clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'],
  enabledJWA: {
    idTokenSigningAlgValues: [...signing],
    userinfoSigningAlgValues: ['RS256', 'ES256', 'EdDSA'],
    clientAuthSigningAlgValues: ['RS256', 'PS256', 'ES256', 'EdDSA'],
  },
  jwks: newKeys(),
  features,
})

/** The provider's own, one for each algorithm. */
function newKeys() {
  return {
    keys: algorithms.map((alg) => ({ ...keyOf(alg).export({ format: 'jwk' }), alg, kid: randomUUID(), use: 'sig' })),
  }
}
let provider: OpenidProvider
beforeAll(async () => {
  provider = await startOpenidProvider(configuration())
})
afterAll(() => provider.close())
beforeEach(() => {
  provider.requests.length = 0
})

const clientOf = (clientId: string, options: Partial<OidcClientOptions> = { clientSecret }) =>
  new OidcClient({ issuer: provider.issuer, clientId, providerName: 'corp', ...options })

async function signIn(app: Mounted): Promise<HttpResponse> {
  const browser = app.browser()
  const login = await browser.get('/auth/oauth/corp/login')
  const back = await provider.visit(String(login.headers['location']))
  return browser.get(`/auth/oauth/corp/callback?${back.searchParams}`)
}

/** Of the one person there is. */
const accounts = new Set<string>()

describe.each(cases)('an id_token under $alg, userinfo as $userinfo, $name, pushed: $par', ({ clientId, options, par }) => {
  test('signs the person in, into the account of every other configuration', async () => {
    const app = await start(() => clientOf(clientId, { ...options, ...(par && { par }), maxAgeSeconds: 600 }))
    const response = await signIn(app)

    expect([response.status, response.body.code]).toEqual([200, undefined])
    expect(accounts.add(response.body.user_id).size).toBe(1)
    const me = await app.browser().get('/auth/me').set('Authorization', `Bearer ${response.body.access_token}`)
    expect(me.body).toMatchObject({ email: person.email.toLowerCase(), name: person.name })
    expect(provider.requests.filter((path) => path === '/request').length).toBe(par ? 1 : 0)
    expect(provider.requests.filter((path) => path === '/me').length).toBe(1)
  })
})

test('a provider whose description requires pushed requests gets them, though nobody said so', async () => {
  provider.use({ features: { ...features, pushedAuthorizationRequests: { enabled: true, requirePushedAuthorizationRequests: true } } })
  const app = await start(() => clientOf('plain'))
  const response = await signIn(app)
  provider.use({})

  expect([response.status, provider.requests.includes('/request')]).toEqual([200, true])
})

test('an encrypted id_token is refused, and the log says how to register the client', async () => {
  const app = await start(() => clientOf('encrypted'))
  const response = await signIn(app)

  expect([response.status, response.body.code]).toEqual([502, 'OAUTH_ERROR'])
  expect(app.logs.text()).toMatch(/id_token refused: it is encrypted \(JWE\).*without encryption/)
})

test('keys that change between two logins are found', async () => {
  const app = await start(() => clientOf('plain'))
  const first = await signIn(app)
  provider.use({ jwks: newKeys() })
  const second = await signIn(app)
  provider.use({})

  expect([first.status, second.status, second.body.user_id]).toEqual([200, 200, first.body.user_id])
})

test('a logout leads to the provider’s own', async () => {
  const app = await start(() => clientOf('plain'))
  const { body } = await signIn(app)
  const { body: answer } = await app.browser().post('/auth/logout').send({ refresh_token: body.refresh_token, provider_logout: true })
  expect(answer.logout_url).toBe(`${provider.issuer}/session/end?client_id=plain`)
  expect((await fetch(answer.logout_url)).status).toBe(200)
})
