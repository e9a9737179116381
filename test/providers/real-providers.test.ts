import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { OidcClient, type OidcClientOptions } from '../../src'
import { signJwt as signWith } from '../../src/providers/signed-token'
import { answer, type FakeProvider, signJwt, startFakeProvider } from '../support/fake-provider'

/** Section 19, what real providers do: each met with software that nobody here wrote. */

const redirectUri = 'https://app.example.com/auth/oauth/corp/callback'
let time: number
let provider: FakeProvider

beforeEach(async () => {
  time = Date.parse('2026-03-01T12:00:00Z')
  provider = await startFakeProvider({ now: () => new Date(time) })
})
afterEach(() => provider.close())

function clientWith(options: Partial<OidcClientOptions> = {}): OidcClient {
  const client = new OidcClient(provider.oidcOptions(options))
  client.useClock(() => new Date(time))
  return client
}

async function logIn(client = clientWith()) {
  return client.fetchUser(await client.exchangeCode({ code: provider.issueCode(), redirectUri }))
}

const whoever = { sub: 'subject-1' }
const [a, b] = ['a@example.com', 'b@example.com']

test.each<[string, object, object, object]>([
  ['an address only in the id_token', { ...whoever }, { email: a, email_verified: true }, { email: a, emailVerified: true }],
  ['an address only in userinfo', { ...whoever, email: b, email_verified: true }, {}, { email: b, emailVerified: true }],
  [
    'the address of userinfo, the flag of the id_token',
    { ...whoever, email: b },
    { email: a, email_verified: true },
    { email: b, emailVerified: null },
  ],
  [
    'the flag of userinfo, the address of the id_token',
    { ...whoever, email_verified: true },
    { email: a },
    { email: a, emailVerified: null },
  ],
  [
    'no address in userinfo but null',
    { ...whoever, email: null, email_verified: true },
    { email: a, email_verified: false },
    { email: a, emailVerified: false },
  ],
  ['a name of both', { ...whoever, name: 'Userinfo' }, { name: 'Token' }, { name: 'Userinfo' }],
  ['a name of userinfo that is null', { ...whoever, name: null }, { name: 'Token' }, { name: 'Token' }],
])('details 19.3: %s', async (_what, userinfo, idToken, expected) => {
  provider.on('userinfo', answer(200, userinfo))
  provider.idToken = ({ email: _email, email_verified: _flag, name: _name, ...claims }) => ({ ...claims, ...idToken })
  await expect(logIn()).resolves.toMatchObject(expected)
})

test('the claims of an id_token are no profile of another subject, and of none', async () => {
  for (const profile of [{ sub: 'subject-2' }, { email: b }]) {
    provider.on('userinfo', answer(200, profile))
    await expect(logIn()).rejects.toMatchObject({ code: 'OAUTH_ERROR' })
  }
})

describe('userinfo as a signed JWT', () => {
  const signed = (claims: object) => answer(200, provider.signJwt(claims), { 'content-type': 'application/jwt' })

  test.each<[string, () => object]>([
    ['with nothing of a token', () => ({})],
    ['with the issuer and us', () => ({ iss: provider.issuer, aud: 'client-1' })],
    ['for us and others', () => ({ aud: ['other', 'client-1'] })],
    ['that lasts', () => ({ exp: time / 1000 + 1 })],
  ])('%s is the profile', async (_what, members) => {
    provider.on('userinfo', signed({ ...whoever, name: 'Signed', ...members() }))
    await expect(logIn()).resolves.toMatchObject({ subject: 'subject-1', name: 'Signed', email: 'ana@example.com' })
  })

  test.each<[string, () => object]>([
    ['of another issuer', () => ({ iss: 'https://other.example' })],
    ['for another client', () => ({ aud: 'client-11' })],
    ['that has expired', () => ({ exp: time / 1000 })],
    ['of another subject', () => ({ sub: 'subject-2' })],
  ])('%s is refused', async (_what, members) => {
    provider.on('userinfo', signed({ ...whoever, ...members() }))
    await expect(logIn()).rejects.toMatchObject({ code: 'OAUTH_ERROR' })
  })

  test('is refused where its signature is another’s, or no keys are known', async () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    provider.on('userinfo', answer(200, signJwt(whoever, { alg: 'RS256', kid: 'fake-1' }, privateKey)))
    await expect(logIn()).rejects.toMatchObject({ code: 'OAUTH_ERROR' })
    provider.on('userinfo', signed(whoever))
    const { jwksUri: _jwksUri, ...withoutKeys } = provider.oidcOptions()
    const client = new OidcClient(withoutKeys)
    client.useClock(() => new Date(time))
    await expect(logIn(client)).rejects.toMatchObject({ code: 'OAUTH_ERROR' })
  })
})

describe('details 19.13: the algorithm of an id_token', () => {
  const keys = {
    RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
    PS384: generateKeyPairSync('rsa', { modulusLength: 2048 }),
    ES512: generateKeyPairSync('ec', { namedCurve: 'P-521' }),
    EdDSA: generateKeyPairSync('ed25519'),
  }
  const publish = () =>
    provider.on(
      'jwks',
      answer(200, { keys: Object.entries(keys).map(([kid, { publicKey }]) => ({ ...publicKey.export({ format: 'jwk' }), kid })) }),
    )
  const described = (algorithms?: unknown) =>
    provider.on(
      'discovery',
      answer(200, {
        issuer: provider.issuer,
        authorization_endpoint: provider.authorizeUrl,
        token_endpoint: provider.tokenUrl,
        jwks_uri: provider.jwksUri,
        token_endpoint_auth_methods_supported: ['client_secret_post'],
        ...(algorithms === undefined ? {} : { id_token_signing_alg_values_supported: algorithms }),
      }),
    )

  test.each([
    [
      ['RS256', 'EdDSA'],
      ['RS256', 'EdDSA'],
    ],
    [['HS256', 'ES512'], ['ES512']],
    [undefined, ['RS256', 'PS384', 'ES512', 'EdDSA']],
  ])('where the document lists %j, %j count', async (listed, expected) => {
    publish()
    described(listed)
    const { clientId, clientSecret, issuer } = provider
    const client = await OidcClient.discover(issuer, { clientId, clientSecret })
    client.useClock(() => new Date(time))
    const accepted: string[] = []
    for (const [alg, { privateKey: key }] of Object.entries(keys) as [keyof typeof keys, { privateKey: KeyObject }][]) {
      provider.idToken = (claims) => signWith(claims, { key, alg, kid: alg })
      const work = client.exchangeCode({ code: provider.issueCode(), redirectUri })
      await work.then(
        () => accepted.push(alg),
        () => undefined,
      )
    }
    expect(accepted).toEqual(expected)
  })
})

describe('keys that change in the very minute of the last read', () => {
  const rotate = (kid: string) => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    provider.on('jwks', answer(200, { keys: [{ ...publicKey.export({ format: 'jwk' }), kid }] }))
    provider.idToken = (claims) => signWith(claims, { key: privateKey, alg: 'ES256', kid })
  }
  const fetches = () => provider.requestsTo('jwks').length

  test('are read again for an id_token of our own exchange, 5 seconds after the last time', async () => {
    const client = clientWith()
    await logIn(client)
    rotate('second')
    await logIn(client)
    expect(fetches()).toBe(2)

    rotate('third')
    time += 4_999
    await expect(logIn(client)).rejects.toMatchObject({ code: 'OAUTH_ERROR' })
    expect(fetches()).toBe(2)
    time += 1
    await expect(logIn(client)).resolves.toMatchObject({ subject: 'subject-1' })
    expect(fetches()).toBe(3)
  })

  test('are not for an id_token that came from elsewhere: anybody can make one up', async () => {
    const client = clientWith()
    await logIn(client)
    const strange = (kid: string) => ({
      ...{ accessToken: 'a', tokenType: 'bearer', refreshToken: null, expiresIn: null, scope: null, raw: {} },
      idToken: provider.signJwt(provider.idTokenClaims(), { header: { kid } }),
    })
    for (const kid of ['one', 'two', 'three']) {
      await expect(client.fetchUser(strange(kid))).rejects.toMatchObject({ code: 'OAUTH_ERROR' })
      time += 10_000
    }
    expect(fetches()).toBe(2)
  })
})

test.each([
  [400, 'unsupported_token_type', 'OAUTH_TOKEN_REJECTED'],
  [400, 'invalid_request', 'OAUTH_ERROR'],
  [401, 'unsupported_token_type', 'OAUTH_ERROR'],
])('introspection that answers %i %s is %s', async (status, error, code) => {
  provider.on('introspect', answer(status, { error }))
  const client = clientWith({ introspectionUrl: provider.introspectionUrl })
  await expect(client.verifyTokenAudience('a.b.c')).rejects.toMatchObject({ code })
})
