import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import type { ClientMetadata } from 'oidc-provider'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  type ClientAuthentication,
  ConfigurationError,
  createHttpClient,
  GitHubClient,
  GoogleClient,
  type HttpClient,
  type OAuthClientOptions,
  OidcClient,
  type OidcClientOptions,
} from '../../src'
import { answer, type FakeProvider, startFakeProvider } from '../support/fake-provider'
import { clientSecret, type OpenidProvider, startOpenidProvider } from '../support/openid-provider'

/** Section 19, details 19.5 and 19.15: each way in which a client proves at a certified provider that it is itself. */

const keys = {
  RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  ES384: generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey,
  EdDSA: generateKeyPairSync('ed25519').privateKey,
}
type Signer = keyof typeof keys
const signers = Object.keys(keys) as Signer[]

const redirectUri = 'http://127.0.0.1:9/auth/oauth/corp/callback'
const nonce = 'nonce-of-this-login'
const codeVerifier = randomBytes(32).toString('base64url')
const pem = (key: KeyObject) => String(key.export({ type: 'pkcs8', format: 'pem' }))

const ways: [clientId: string, options: Partial<OAuthClientOptions>][] = [
  ['client_secret_basic', { clientAuthentication: 'client_secret_basic', clientSecret }],
  ['client_secret_post', { clientAuthentication: 'client_secret_post', clientSecret }],
  ['none', { clientAuthentication: 'none' }],
  ...signers.map((alg): [string, Partial<OAuthClientOptions>] => [
    alg,
    { clientAuthentication: 'private_key_jwt', clientKey: { privateKey: keys[alg], kid: alg } },
  ]),
  ['PS256', { clientAuthentication: 'private_key_jwt', clientKey: { privateKey: pem(keys.RS256), alg: 'PS256' } }],
]

let provider: OpenidProvider
const sent: { path: string; form: URLSearchParams; authorization: string | undefined }[] = []
const httpClient: HttpClient = async (url, request) => {
  const form = new URLSearchParams(request?.method === 'POST' ? request.body : '')
  sent.push({ path: new URL(url).pathname, form, authorization: request?.headers?.['authorization'] })
  return createHttpClient()(url, request)
}
const sentTo = (path: string) => sent.filter((call) => call.path === path)

beforeAll(async () => {
  const signedBy = (id: string, key: KeyObject, alg: string): ClientMetadata => ({
    ...registered(id, 'private_key_jwt'),
    token_endpoint_auth_signing_alg: alg as NonNullable<ClientMetadata['token_endpoint_auth_signing_alg']>, // one of the provider's list below
    jwks: { keys: [{ ...createPublicKey(key).export({ format: 'jwk' }), kid: id, use: 'sig' }] },
  })
  provider = await startOpenidProvider({
    clients: [
      registered('client_secret_basic', 'client_secret_basic'),
      registered('client_secret_post', 'client_secret_post'),
      registered('none', 'none'),
      ...signers.map((alg) => signedBy(alg, keys[alg], alg)),
      signedBy('PS256', keys.RS256, 'PS256'),
    ],
    clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'],
    enabledJWA: { clientAuthSigningAlgValues: [...signers, 'PS256'] },
    features: { introspection: { enabled: true } },
  })
})
afterAll(() => provider.close())
beforeEach(() => {
  sent.length = 0
})

function registered(id: string, method: ClientAuthentication): ClientMetadata {
  const secret = method.startsWith('client_secret') ? { client_secret: clientSecret } : {}
  return { client_id: id, ...secret, redirect_uris: [redirectUri], token_endpoint_auth_method: method }
}

const discover = (options: Partial<OAuthClientOptions>, clientId: string) =>
  OidcClient.discover(provider.issuer, { clientId, httpClient, ...options })

async function logIn(client: OidcClient) {
  const code = await provider.approve(client, { redirectUri, nonce, codeVerifier })
  return client.exchangeCode({ code, redirectUri, codeVerifier, nonce })
}

describe.each(ways)('as %s', (clientId, options) => {
  test('a code is exchanged, discovered or by name, and a token in hand is asked about', async () => {
    const discovered = await discover(options, clientId)
    const { authorizeUrl, tokenUrl } = discovered
    const named = new OidcClient({ clientId, httpClient, authorizeUrl, tokenUrl, jwksUri: `${provider.issuer}/jwks`, ...options })

    const { accessToken } = await logIn(discovered)
    await logIn(named)

    const proof = await discovered.verifyTokenAudience(accessToken)
    expect(proof.claims).toMatchObject({ active: true, client_id: clientId })
  })
})

test('client_secret_basic sends the credentials in the header, the others in the form', async () => {
  for (const [clientId, options] of ways) await logIn(await discover(options, clientId))

  const names = sentTo('/token').map(({ form, authorization }) => [
    authorization?.split(' ')[0],
    ...[...form.keys()].filter((name) => name.startsWith('client')),
  ])
  const assertion = [undefined, 'client_id', 'client_assertion_type', 'client_assertion']
  expect(names).toEqual([
    ['Basic'],
    [undefined, 'client_id', 'client_secret'],
    [undefined, 'client_id'],
    ...ways.slice(3).map(() => assertion),
  ])
})

test('RFC 7523: an assertion names the client twice, the issuer, a jti of its own, and ends after 60 seconds', async () => {
  const client = await discover({ clientAuthentication: 'private_key_jwt', clientKey: { privateKey: keys.ES256, kid: 'ES256' } }, 'ES256')
  await logIn(client)
  await logIn(client)

  const [first, second] = sentTo('/token').map(({ form }) => partsOf(form.get('client_assertion')))
  expect(first?.header).toEqual({ alg: 'ES256', typ: 'JWT', kid: 'ES256' })
  const { iat } = first?.claims ?? {}
  expect(first?.claims).toEqual({ iss: 'ES256', sub: 'ES256', aud: provider.issuer, jti: expect.any(String), iat, exp: Number(iat) + 60 })
  expect(second?.claims['jti']).not.toBe(first?.claims['jti'])
})

test('without an issuer the audience of an assertion is the token endpoint', async () => {
  const { authorizeUrl, tokenUrl } = await discover({ clientAuthentication: 'none' }, 'none')
  const key = { clientAuthentication: 'private_key_jwt', clientKey: { privateKey: keys.EdDSA } } as const
  await logIn(new OidcClient({ clientId: 'EdDSA', httpClient, authorizeUrl, tokenUrl, scopes: ['openid'], ...key }))
  expect(partsOf(sentTo('/token')[0]?.form.get('client_assertion')).claims['aud']).toBe(tokenUrl)
})

function partsOf(jwt: string | null | undefined) {
  const [header = {}, claims = {}] = String(jwt)
    .split('.', 2)
    .map((part): Record<string, unknown> => JSON.parse(Buffer.from(part, 'base64url').toString()))
  return { header, claims }
}

describe('by the fake provider', () => {
  let fake: FakeProvider
  beforeAll(async () => {
    fake = await startFakeProvider()
  })
  afterAll(() => fake.close())

  const described = (methods: unknown) =>
    answer(200, {
      issuer: fake.issuer,
      authorization_endpoint: fake.authorizeUrl,
      token_endpoint: fake.tokenUrl,
      jwks_uri: fake.jwksUri,
      token_endpoint_auth_methods_supported: methods,
    })

  test.each([
    ['lists nothing', undefined, 'Basic'],
    ['lists both', ['client_secret_post', 'client_secret_basic'], 'Basic'],
    ['lists the body alone', ['client_secret_post', 'private_key_jwt'], 'form'],
    ['lists what is no list', 'client_secret_basic', 'form'],
  ])('details 19.15: where the document %s, the secret goes there', async (_what, methods, where) => {
    fake.on('discovery', described(methods))
    const { issuer, clientId } = fake
    const client = await OidcClient.discover(issuer, { clientId, clientSecret: fake.clientSecret })
    const posting = await OidcClient.discover(issuer, {
      clientId,
      clientSecret: fake.clientSecret,
      clientAuthentication: 'client_secret_post',
    })
    const open = await OidcClient.discover(issuer, { clientId, clientSecret: '' })
    for (const each of [client, posting]) await each.exchangeCode({ code: fake.issueCode(), redirectUri })
    await expect(open.exchangeCode({ code: fake.issueCode(), redirectUri })).rejects.toMatchObject({ code: 'OAUTH_ERROR' })

    const [chosen, asTold, withoutSecret] = fake.requestsTo('token').slice(-3)
    expect(chosen?.headers.authorization?.split(' ')[0] ?? 'form').toBe(where)
    expect(asTold?.form.get('client_secret')).toBe(fake.clientSecret)
    expect([withoutSecret?.headers.authorization, withoutSecret?.form.get('client_id')]).toEqual([undefined, clientId])
  })

  test('the built-in clients take it, too; GitHub answers about a token in hand to a secret alone', async () => {
    const key = { clientSecret: '', clientAuthentication: 'private_key_jwt', clientKey: { privateKey: keys.RS256 } } as const
    const google = new GoogleClient({ ...fake.googleOptions(), ...key })
    const github = new GitHubClient({ ...fake.githubOptions(), ...key })
    for (const client of [google, github])
      await expect(client.exchangeCode({ code: fake.issueCode(), redirectUri })).rejects.toMatchObject({ code: 'OAUTH_ERROR' })
    const audiences = fake
      .requestsTo('token')
      .slice(-2)
      .map(({ form }) => partsOf(form.get('client_assertion')).claims['aud'])
    expect(audiences).toEqual([fake.issuer, fake.tokenUrl])
    await expect(github.verifyTokenAudience('a')).rejects.toMatchObject({ code: 'OAUTH_AUDIENCE_UNVERIFIABLE' })
  })

  test('the router’s clock dates an assertion, of the built-in clients too', async () => {
    const key = { clientSecret: '', clientAuthentication: 'private_key_jwt', clientKey: { privateKey: keys.RS256 } } as const
    const at = new Date('2031-02-03T04:05:06Z')
    for (const client of [new GoogleClient({ ...fake.googleOptions(), ...key }), new GitHubClient({ ...fake.githubOptions(), ...key })]) {
      client.useClock(() => at)
      await client.exchangeCode({ code: fake.issueCode(), redirectUri }).catch(() => undefined) // the fake knows no such client
      const [sent] = fake.requestsTo('token').slice(-1)
      expect(partsOf(sent?.form.get('client_assertion')).claims['iat']).toBe(at.getTime() / 1000)
    }
  })

  test('what the provider repeats of an assertion is shown to nobody, and neither is the key', async () => {
    fake.on('token', (request, response) => answer(400, { error: 'invalid_client', seen: request.body })(request, response))
    const { clientSecret: _secret, ...endpoints } = fake.oidcOptions()
    const privateKey = pem(keys.RS256)
    const client = new OidcClient({ ...endpoints, clientAuthentication: 'private_key_jwt', clientKey: { privateKey } })
    const error = await client.exchangeCode({ code: 'c', redirectUri }).catch((thrown: unknown) => thrown)
    fake.on('token', null)

    expect(inspect(error, { depth: 10 })).toContain('[removed]')
    expect(inspect(error, { depth: 10 })).not.toContain('eyJ')
    expect(inspect(client, { depth: 10, showHidden: true })).not.toContain(privateKey.split('\n')[1])
  })

  const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey
  const keyed = (clientKey: unknown) => ({ clientSecret: undefined, clientAuthentication: 'private_key_jwt', clientKey })
  test.each([
    [
      'another way',
      { clientAuthentication: 'client_secret_jwt' },
      /clientAuthentication must be one of client_secret_basic, client_secret_post/,
    ],
    ['no secret', { clientSecret: undefined }, /clientSecret must be a string.*'none'.*'private_key_jwt'/],
    ['no secret for the header', { clientSecret: undefined, clientAuthentication: 'client_secret_basic' }, /clientSecret must be a string/],
    ['a secret of a public client', { clientAuthentication: 'none' }, /leave clientSecret out beside clientAuthentication: 'none'/],
    ['a secret beside a key', { ...keyed({ privateKey: keys.RS256 }), clientSecret: 's' }, /leave clientSecret out/],
    ['a key beside a secret', { clientKey: { privateKey: keys.RS256 } }, /clientKey needs clientAuthentication: 'private_key_jwt'/],
    ['no key', keyed(undefined), /needs clientKey/],
    ['a key as text', keyed('pem'), /needs clientKey/],
    ['no private key', keyed({}), /clientKey\.privateKey must be a private key/],
    ['what is no PEM', keyed({ privateKey: 'a secret text' }), /clientKey\.privateKey must be a private key without a passphrase/],
    ['a public key', keyed({ privateKey: createPublicKey(keys.RS256) }), /clientKey\.privateKey/],
    ['a short key', keyed({ privateKey: small }), /RSA of 2048 to 8192 bits/],
    ['another algorithm', keyed({ privateKey: keys.ES256, alg: 'RS256' }), /clientKey\.alg must be one that the key is for: ES256/],
    ['an empty kid', keyed({ privateKey: keys.ES256, kid: '' }), /clientKey\.kid/],
    ['a misspelt member', keyed({ privateKey: keys.ES256, keyId: 'a' }), /unknown option clientKey\.keyId/],
  ])('%s is refused at construction, naming the option and never its value', async (_what, wrong, message) => {
    // Deliberately not what the type says.
    const options = { ...fake.oidcOptions(), ...wrong } as unknown as ReturnType<typeof fake.oidcOptions>
    const thrown = attempt(() => new OidcClient(options))
    expect(thrown).toBeInstanceOf(ConfigurationError)
    expect(String(thrown)).toMatch(message)
    expect(String(thrown)).not.toContain('a secret text')
  })
})

test('Ed25519 is a name of the algorithm EdDSA', () => {
  const options: OidcClientOptions = {
    providerName: 'corp',
    authorizeUrl: 'https://id.example.test/authorize',
    tokenUrl: 'https://id.example.test/token',
    issuer: 'https://id.example.test',
    clientId: 'client-1',
    clientAuthentication: 'private_key_jwt',
    clientKey: { privateKey: keys.EdDSA, alg: 'Ed25519' },
  }
  expect(attempt(() => new OidcClient(options))).toBeInstanceOf(OidcClient)
})

function attempt(work: () => unknown): unknown {
  try {
    return work()
  } catch (thrown) {
    return thrown
  }
}
