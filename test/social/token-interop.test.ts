import { generateKeyPairSync, randomBytes } from 'node:crypto'
import supertest from 'supertest'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createHttpClient, createTokenVerifier, OidcClient } from '../../src'
import type { Mounted } from '../support/app'
import { databases } from '../support/databases'
import { clientSecret, confidential, type OpenidProvider, person, publicClient, startOpenidProvider } from '../support/openid-provider'
import { onDatabase } from './redirect-steps'

/** Token in hand with a provider of another make: what its apps are given is what ours has to judge. */
const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onDatabase(database, { memory: true })

const redirectUri = 'http://127.0.0.1:9/callback'
const api = 'https://api.example'
const codeVerifier = randomBytes(32).toString('base64url')
const httpClient = createHttpClient()
let provider: OpenidProvider

function newKey(kid: string) {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { ...privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' }
}

beforeAll(async () => {
  const ids = ['our-app', 'strange-app', 'our-app-jwt', 'strange-app-jwt']
  provider = await startOpenidProvider({
    clients: [
      confidential('web', redirectUri, 'client_secret_post'),
      confidential('web-basic', redirectUri, 'client_secret_basic'),
      ...ids.map((id) => publicClient(id, redirectUri)),
    ],
    jwks: { keys: [newKey('first')] },
    extraTokenClaims: () => ({ ...person, email: 'jwt@example.com' }),
    features: {
      introspection: { enabled: true },
      // RFC 9068 tokens for the apps whose name says so, opaque ones for the others.
      resourceIndicators: {
        enabled: true,
        defaultResource: (_context, client) => (client?.clientId.endsWith('-jwt') ? api : []),
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: 'openid email profile',
          audience: api,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  })
})
afterAll(() => provider.close())

/** What an app on a phone holds after its own login, by code and PKCE. */
async function tokensOf(clientId: string, secret = '') {
  const { authorizeUrl, tokenUrl } = await OidcClient.discover(provider.issuer, { clientId, clientSecret: secret })
  const app = new OidcClient({ clientId, clientSecret: secret, authorizeUrl, tokenUrl, issuer: provider.issuer, httpClient })
  const code = await provider.approve(app, { redirectUri, nonce: 'n', codeVerifier })
  const { accessToken, idToken } = await app.exchangeCode({ code, redirectUri, codeVerifier, nonce: 'n' })
  return { accessToken, idToken: String(idToken) }
}

async function inHand(host: Mounted, key: string, accessToken: string) {
  provider.requests.length = 0
  const { status, body } = await supertest(host.app).post(`/auth/oauth/${key}/token`).send({ access_token: accessToken })
  return { outcome: body.code ?? status, userId: body.user_id, asked: [...provider.requests] }
}

test('opaque tokens by introspection: our app’s, in either way of authenticating; not another’s, nor a token that ended', async () => {
  const extraAudiences = ['our-app']
  const discovered = await OidcClient.discover(provider.issuer, { clientId: 'web', clientSecret, extraAudiences })
  const { authorizeUrl, tokenUrl } = discovered
  const basic = new OidcClient({
    clientId: 'web-basic',
    clientSecret,
    authorizeUrl,
    tokenUrl,
    extraAudiences,
    introspectionUrl: `${provider.issuer}/token/introspection`,
    userinfoUrl: `${provider.issuer}/me`,
    clientAuthentication: 'client_secret_basic',
  })
  const wrong = await OidcClient.discover(provider.issuer, { clientId: 'web', clientSecret: 'wrong', extraAudiences })
  const host = await start({ providers: { post: discovered, basic, wrong } })
  const [ours, own, strange] = await Promise.all([tokensOf('our-app'), tokensOf('web', clientSecret), tokensOf('strange-app')])

  const first = await inHand(host, 'post', ours.accessToken)
  expect(first).toEqual({ outcome: 200, userId: expect.any(String), asked: ['/token/introspection', '/me'] })
  expect((await inHand(host, 'post', own.accessToken)).userId).toBe(first.userId)
  expect(await host.knex('auth_identities').where({ provider: 'post' })).toMatchObject([{ subject: 'account-7', email: 'ana@example.com' }])
  // The same address by another key: the callback's rule.
  expect((await inHand(host, 'basic', ours.accessToken)).outcome).toBe('OAUTH_EMAIL_TAKEN')

  const refused = { userId: undefined, asked: ['/token/introspection'] }
  expect(await inHand(host, 'post', strange.accessToken)).toEqual({ ...refused, outcome: 'OAUTH_TOKEN_AUDIENCE_MISMATCH' })
  expect(await inHand(host, 'basic', strange.accessToken)).toEqual({ ...refused, outcome: 'OAUTH_TOKEN_AUDIENCE_MISMATCH' })
  // This provider answers 400 unsupported_token_type to what is no opaque token.
  expect(await inHand(host, 'post', ours.idToken)).toEqual({ ...refused, outcome: 'OAUTH_TOKEN_REJECTED' })
  expect(await inHand(host, 'post', 'never-issued')).toEqual({ ...refused, outcome: 'OAUTH_TOKEN_REJECTED' })
  expect(await inHand(host, 'wrong', ours.accessToken)).toEqual({ ...refused, outcome: 'OAUTH_ERROR' })
})

test('JWT access tokens (RFC 9068) offline: our app’s, not another’s, no id_token; and a rotated key is picked up', async () => {
  const tokenVerifier = createTokenVerifier({
    issuer: provider.issuer,
    jwksUri: `${provider.issuer}/jwks`,
    algorithms: ['RS256'],
    now: () => new Date(), // the provider's, not the host's test clock
  })
  const { authorizeUrl, tokenUrl } = await OidcClient.discover(provider.issuer, { clientId: 'web', clientSecret })
  const corp = new OidcClient({ clientId: 'our-app-jwt', clientSecret: '', authorizeUrl, tokenUrl, tokenVerifier })
  const host = await start({ providers: { corp } })
  const [ours, strange] = await Promise.all([tokensOf('our-app-jwt'), tokensOf('strange-app-jwt')])

  const first = await inHand(host, 'corp', ours.accessToken)
  expect(first).toEqual({ outcome: 200, userId: expect.any(String), asked: ['/jwks'] })
  expect(await inHand(host, 'corp', ours.accessToken)).toEqual({ ...first, asked: [] })
  expect(await host.knex('auth_identities').where({ provider: 'corp' })).toMatchObject([{ subject: 'account-7', name: 'Ana' }])
  const refused = { userId: undefined, asked: [] }
  expect(await inHand(host, 'corp', strange.accessToken)).toEqual({ ...refused, outcome: 'OAUTH_TOKEN_AUDIENCE_MISMATCH' })
  expect(await inHand(host, 'corp', ours.idToken)).toEqual({ ...refused, outcome: 'OAUTH_TOKEN_REJECTED' })

  provider.use({ jwks: { keys: [newKey('second')] } })
  const { accessToken } = await tokensOf('our-app-jwt')
  expect(await inHand(host, 'corp', accessToken)).toEqual({ ...first, asked: ['/jwks'] })
  expect(await inHand(host, 'corp', ours.accessToken)).toEqual({ ...refused, outcome: 'OAUTH_TOKEN_REJECTED' })
})
