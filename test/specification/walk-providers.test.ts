import { describe, expect, test } from 'vitest'
import {
  ConfigurationError,
  createKnexStore,
  createTokenVerifier,
  GitHubClient,
  GoogleClient,
  NotImplementedError,
  OidcClient,
} from '../../src'
import { newPerson } from '../social/redirect-steps'
import { baseUrl, type MountOptions, mount } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { answer, type FakeProvider, unreachableUrl } from '../support/fake-provider'
import { clientOf, codeOf, writtenWith } from './client'

/** A generic client with the settings that the specification has, and no other. */
function oidc(provider: FakeProvider, options: object = {}): OidcClient {
  const { clientId, clientSecret, authorizeUrl, tokenUrl, userinfoUrl } = provider
  return new OidcClient({ clientId, clientSecret, authorizeUrl, tokenUrl, userinfoUrl, providerName: 'generic', ...options })
}

const verifierOf = ({ issuer, jwksUri }: FakeProvider) => createTokenVerifier({ issuer, jwksUri, algorithms: ['RS256'] })

/** One client of each kind that the table of audience checks names. */
const providers = {
  google: (provider: FakeProvider) => new GoogleClient(provider.googleOptions()),
  github: (provider: FakeProvider) => new GitHubClient(provider.githubOptions()),
  generic: (provider: FakeProvider) => oidc(provider),
  introspection: (provider: FakeProvider) => oidc(provider, { introspectionUrl: provider.introspectionUrl }),
  tokeninfo: (provider: FakeProvider) => oidc(provider, { tokeninfoUrl: provider.tokeninfoUrl }),
  verifier: (provider: FakeProvider) => oidc(provider, { tokenVerifier: verifierOf(provider) }),
  nobody: (provider: FakeProvider) => oidc(provider, { clientId: '', introspectionUrl: provider.introspectionUrl }),
}

const start = appPerTest()
const client = async (mounting: Omit<MountOptions, 'knex'> = {}) => clientOf(await start(writtenWith({ providers, ...mounting })))

describe('Provider configuration', () => {
  test('the generic client works with the settings of the table alone: scopes openid email profile, and the secret in the body of the exchange', async () => {
    const { get, social, host } = await client()
    const { headers } = await get('/oauth/generic/login')
    const asked = new URL(String(headers['location'])).searchParams
    expect([asked.get('scope'), asked.get('redirect_uri')]).toEqual(['openid email profile', `${baseUrl}/auth/oauth/generic/callback`])
    const person = newPerson()
    const { status, body } = await social(person, 'generic')
    expect(status).toBe(200)
    const { form, headers: sent } = host.provider.requestsTo('token')[0] ?? { form: new URLSearchParams(), headers: {} }
    expect([form.get('client_id'), form.get('client_secret'), sent['authorization']]).toEqual([
      host.provider.clientId,
      host.provider.clientSecret,
      undefined,
    ])
    expect((await get('/oauth/accounts', body.access_token)).body).toMatchObject([{ provider: 'generic', subject: person.sub }])
  })

  test.each([
    ['google', 'openid email profile'],
    ['github', 'read:user user:email'],
  ])('%s asks for the scopes %s', async (key, scopes) => {
    const { get } = await client()
    expect(new URL(String((await get(`/oauth/${key}/login`)).headers['location'])).searchParams.get('scope')).toBe(scopes)
  })

  test('introspection_url with tokeninfo_url is refused when the client is built, and no userinfo_url is NotImplementedError', async () => {
    const { host } = await client()
    const { introspectionUrl, tokeninfoUrl } = host.provider
    expect(() => oidc(host.provider, { introspectionUrl, tokeninfoUrl })).toThrow(ConfigurationError)
    const tokens = { accessToken: 'x', tokenType: 'bearer', refreshToken: null, idToken: null, expiresIn: null, scope: null, raw: {} }
    await expect(oidc(host.provider, { userinfoUrl: undefined }).fetchUser(tokens)).rejects.toThrow(NotImplementedError)
  })

  test('the provider without OIDC reports email_verified as null, and the public address', async () => {
    const { host, post, get } = await client()
    const email = 'octo@example.test'
    const token = host.provider.issueAccessToken({ profile: { id: 7, email, name: 'Octo' } })
    const { body } = await post('/oauth/github/token', { access_token: token })
    expect((await get('/oauth/accounts', body.access_token)).body).toMatchObject([{ subject: '7', email, email_verified: null }])
  })
})

describe('Token in hand', () => {
  const tokenFor = ({ host: { provider } }: Awaited<ReturnType<typeof client>>, key: string) => {
    const person = key === 'github' ? { id: 8, email: 'hub@example.test', name: 'Hub' } : newPerson()
    return key === 'verifier'
      ? provider.signJwt({ ...provider.idTokenClaims(), scope: 'openid', ...person })
      : provider.issueAccessToken({ profile: person })
  }

  test.each(['google', 'github', 'introspection', 'tokeninfo', 'verifier'])('%s: the answer is that of the callback', async (key) => {
    const written = await client()
    const { status, body } = await written.post(`/oauth/${key}/token`, { access_token: tokenFor(written, key) })
    expect([status, body]).toMatchObject([200, { access_token: expect.any(String), mfa_required: false }])
  })

  test.each(['generic', 'nobody'])('%s cannot check the audience: 501, and the profile is never fetched', async (key) => {
    const written = await client()
    const response = await written.post(`/oauth/${key}/token`, { access_token: tokenFor(written, key) })
    expect([...codeOf(response), written.host.provider.requests]).toEqual([501, 'OAUTH_AUDIENCE_UNVERIFIABLE', []])
  })

  test.each([
    ['active is not true', answer(200, { active: false }), 401, 'OAUTH_TOKEN_REJECTED'],
    ["another client's azp", answer(200, { active: true, azp: 'another', sub: 'x' }), 401, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
    ['a 4xx', answer(401, { error: 'invalid_client' }), 502, 'OAUTH_ERROR'],
    ['a 5xx', answer(503, {}), 502, 'OAUTH_PROVIDER_UNAVAILABLE'],
    ['no JSON', answer(200, '<html>'), 502, 'OAUTH_PROVIDER_UNAVAILABLE'],
  ])('an introspection endpoint that answers %s', async (_what, handler, status, code) => {
    const written = await client()
    written.host.provider.on('introspect', handler)
    expect(codeOf(await written.post('/oauth/introspection/token', { access_token: 'in-hand' }))).toEqual([status, code])
  })

  test.each(['google', 'github', 'tokeninfo'])('%s: a token of another application is 401 and touches no account', async (key) => {
    const { host, post } = await client()
    const token = host.provider.issueAccessToken({ issuedTo: 'another', profile: newPerson() })
    expect(codeOf(await post(`/oauth/${key}/token`, { access_token: token }))).toEqual([401, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'])
    expect(await host.knex('auth_users')).toEqual([])
  })

  test('the extra audiences of the OIDC-semantics built-in are accepted', async () => {
    const extra = (provider: FakeProvider) => new GoogleClient(provider.googleOptions({ extraAudiences: ['a-phone'] }))
    const { host, post } = await client({ providers: { google: extra } })
    const token = host.provider.issueAccessToken({ issuedTo: 'a-phone', profile: newPerson() })
    expect((await post('/oauth/google/token', { access_token: token })).status).toBe(200)
  })
})

describe('Offline verification', () => {
  type Provider = FakeProvider
  const signed = (provider: Provider, claims: object = {}, options = {}) =>
    provider.signJwt({ ...provider.idTokenClaims(), scope: 'openid', ...newPerson(), ...claims }, options)

  test.each<[string, (provider: Provider) => string, number, string]>([
    ['a key set without a signing key', (provider) => keySet(provider, { keys: [] }), 502, 'OAUTH_PROVIDER_UNAVAILABLE'],
    ['a key set that is an error', (provider) => keySet(provider, {}, 500), 502, 'OAUTH_PROVIDER_UNAVAILABLE'],
    ['a key set of use enc', (provider) => encryptionOnly(provider), 502, 'OAUTH_PROVIDER_UNAVAILABLE'],
    ['an unknown kid', (provider) => signed(provider, {}, { header: { kid: 'unknown' } }), 401, 'OAUTH_TOKEN_REJECTED'],
    ['what is no JWT', () => 'opaque', 401, 'OAUTH_TOKEN_REJECTED'],
    ['alg none', (provider) => unsigned(provider, 'none'), 401, 'OAUTH_TOKEN_REJECTED'],
    ['alg HS256', (provider) => unsigned(provider, 'HS256'), 401, 'OAUTH_TOKEN_REJECTED'],
    ['a bad signature', (provider) => `${signed(provider).slice(0, -8)}AAAAAAAA`, 401, 'OAUTH_TOKEN_REJECTED'],
    ['another issuer', (provider) => signed(provider, { iss: 'https://other.example' }), 401, 'OAUTH_TOKEN_REJECTED'],
    ['an expired token', (provider) => signed(provider, { exp: 1 }), 401, 'OAUTH_TOKEN_REJECTED'],
    ['a token without sub', (provider) => signed(provider, { sub: undefined }), 401, 'OAUTH_TOKEN_REJECTED'],
    ['the aud of another application', (provider) => signed(provider, { aud: 'another' }), 401, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
    ['the azp of another application', (provider) => signed(provider, { azp: 'another' }), 401, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
  ])('%s', async (_what, tokenOf, status, code) => {
    const { host, post } = await client()
    expect(codeOf(await post('/oauth/verifier/token', { access_token: tokenOf(host.provider) }))).toEqual([status, code])
    expect(host.provider.requestsTo('userinfo')).toEqual([])
  })

  test('a key set that cannot be reached is 502 OAUTH_PROVIDER_UNAVAILABLE', async () => {
    const away = (provider: Provider) =>
      oidc(provider, {
        tokenVerifier: createTokenVerifier({ issuer: provider.issuer, jwksUri: unreachableUrl, algorithms: ['RS256'] }),
      })
    const { host, post } = await client({ providers: { verifier: away } })
    const response = await post('/oauth/verifier/token', { access_token: signed(host.provider) })
    expect(codeOf(response)).toEqual([502, 'OAUTH_PROVIDER_UNAVAILABLE'])
  })

  function keySet(provider: Provider, body: object, status = 200): string {
    provider.on('jwks', answer(status, body))
    return signed(provider)
  }

  function encryptionOnly(provider: Provider): string {
    return keySet(provider, { keys: [{ kty: 'RSA', kid: 'fake-1', use: 'enc', n: 'AQAB', e: 'AQAB' }] })
  }

  function unsigned(provider: Provider, alg: string): string {
    const [, payload = ''] = signed(provider).split('.')
    return `${Buffer.from(JSON.stringify({ alg, kid: 'fake-1' })).toString('base64url')}.${payload}.`
  }
})

describe('Boot-time requirements', () => {
  test('social login without a provider, without an identity table or without a name column does not start, and the error names the piece', async () => {
    const { host } = await client()
    const { knex } = host
    const boot = (options: Omit<MountOptions, 'knex'>) => mount({ knex, ...options })
    await expect(boot({ providers: {} })).rejects.toThrow(/provider/)
    const { identities: _none, ...withoutIdentities } = createKnexStore({ knex })
    await expect(boot({ options: { store: withoutIdentities } })).rejects.toThrow(/identit/)
    const withoutName = createKnexStore({ knex, users: { columns: { name: false } } })
    await expect(boot({ options: { store: withoutName } })).rejects.toThrow(/name/)
  })

  test('an override of a method that the routes no longer call is a warning', async () => {
    const { host } = await client({ options: { loginWithProvider: () => undefined, issueMfaToken: () => undefined } })
    const warnings = host.logs.entries.filter(({ level }) => level === 'warn').map(({ message }) => message)
    expect(warnings).toEqual(
      expect.arrayContaining([expect.stringContaining('loginWithProvider'), expect.stringContaining('issueMfaToken')]),
    )
  })
})
