import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ConfigurationError, OAuthError } from '../../src/core/errors'
import { createHttpClient } from '../../src/core/http-client'
import { GitHubClient } from '../../src/providers/github'
import { GoogleClient } from '../../src/providers/google'
import { providersFromEnv } from '../../src/providers/presets'
import type { ProviderClient } from '../../src/providers/provider-client'
import { answer, type FakeProvider, startFakeProvider } from '../support/fake-provider'

const redirectUri = 'https://app.example.com/auth/oauth/x/callback'
const credentials = { clientId: 'client-1', clientSecret: 'secret' }
let provider: FakeProvider

beforeEach(async () => {
  provider = await startFakeProvider()
})
afterEach(() => provider.close())

async function logIn(client: ProviderClient, scope: string) {
  return client.fetchUser(await client.exchangeCode({ code: provider.issueCode({ scope }), redirectUri }))
}

describe('GoogleClient', () => {
  test('has OIDC semantics: its own name, public endpoints and the scopes openid email profile', () => {
    expect(new GoogleClient(credentials)).toMatchObject({
      providerName: 'google',
      authorizeUrl: 'https://accounts.google.com/o/oauth2/v2/auth',
      tokenUrl: 'https://oauth2.googleapis.com/token',
      scopes: ['openid', 'email', 'profile'],
      pkce: true,
    })
  })

  test('its endpoints can be overridden; the id_token is checked against the published keys', async () => {
    const client = new GoogleClient(provider.googleOptions())
    await expect(logIn(client, 'openid email')).resolves.toMatchObject({ provider: 'google', subject: 'subject-1', emailVerified: true })
    expect(provider.requestsTo('jwks').length).toBe(1)
    provider.idToken = (claims) => provider.signJwt(claims).replace(/.{6}$/, 'AAAAAA')
    await expect(logIn(client, 'openid email')).rejects.toBeInstanceOf(OAuthError)
  })

  test.each([
    ['https://accounts.google.com', true],
    ['accounts.google.com', true],
    ['https://accounts.google.com/', false],
    ['evil.example', false],
  ])('the issuer %s is accepted: %s', async (iss, isAccepted) => {
    const { issuer: _issuer, ...endpoints } = provider.googleOptions().endpoints
    const client = new GoogleClient(provider.googleOptions({ endpoints }))
    provider.idToken = (claims) => ({ ...claims, iss })
    const outcome = await logIn(client, 'openid').then(
      () => true,
      () => false,
    )
    expect(outcome).toBe(isAccepted)
  })

  test('the spelling without a scheme is of the public issuer only', async () => {
    provider.idToken = (claims) => ({ ...claims, iss: 'accounts.google.com' })
    await expect(logIn(new GoogleClient(provider.googleOptions()), 'openid')).rejects.toBeInstanceOf(OAuthError)
  })

  test.each([
    { endpoints: { apiUrl: 'https://api.example' } },
    { endpoints: { tokenUrl: 'http://idp.example/token' } },
    { userinfoUrl: 'https://idp.example' },
  ])('the options %j are refused', (wrong) => {
    expect(() => new GoogleClient({ ...credentials, ...wrong })).toThrow(ConfigurationError)
  })
})

describe('GitHubClient', () => {
  test('is without OIDC: the scopes read:user and user:email, no id_token', () => {
    expect(new GitHubClient(credentials)).toMatchObject({
      providerName: 'github',
      authorizeUrl: 'https://github.com/login/oauth/authorize',
      tokenUrl: 'https://github.com/login/oauth/access_token',
      scopes: ['read:user', 'user:email'],
    })
  })

  test('reads the profile from GET /user; the numeric id becomes a decimal string', async () => {
    const user = await logIn(new GitHubClient(provider.githubOptions()), 'read:user')
    expect(user).toEqual({
      provider: 'github',
      subject: '583231',
      email: 'ana@example.com',
      emailVerified: null,
      name: 'Ana Souza',
      picture: 'https://avatars.example.com/u/583231',
      raw: provider.githubProfile,
    })
    expect(provider.requestsTo('user')[0]).toMatchObject({ method: 'GET', url: '/api/user' })
    // GitHub refuses API calls without a user agent.
    expect(provider.requestsTo('user')[0]?.headers['user-agent']).toBeTruthy()
  })

  test('always reports email_verified as null, whatever the profile says', async () => {
    provider.githubProfile['email_verified'] = true
    provider.githubProfile['emailVerified'] = true
    await expect(logIn(new GitHubClient(provider.githubOptions()), '')).resolves.toMatchObject({ emailVerified: null })
  })

  test('the email is null when the person keeps it private', async () => {
    provider.githubProfile['email'] = null
    await expect(logIn(new GitHubClient(provider.githubOptions()), '')).resolves.toMatchObject({ email: null })
  })

  test.each([['583231'], [null], [{}], [9007199254740992], [1.5]])('the id %j is refused', async (id) => {
    provider.githubProfile['id'] = id
    await expect(logIn(new GitHubClient(provider.githubOptions()), '')).rejects.toBeInstanceOf(OAuthError)
  })

  test('a refusal with status 200 is a refusal', async () => {
    provider.on('token', answer(200, { error: 'bad_verification_code', error_description: 'The code is incorrect.' }))
    const work = logIn(new GitHubClient(provider.githubOptions()), '')
    await expect(work).rejects.toMatchObject({ code: 'OAUTH_ERROR', details: { provider: 'github', status: 200 } })
  })

  test.each([{ endpoints: { jwksUri: 'https://idp.example' } }, { endpoints: { apiUrl: 'http://idp.example' } }, { issuer: 'x' }])(
    'the options %j are refused',
    (wrong) => {
      expect(() => new GitHubClient({ ...credentials, ...wrong })).toThrow(ConfigurationError)
    },
  )
})

describe('providersFromEnv', () => {
  test('a provider whose client id is empty or absent is not registered', () => {
    expect(providersFromEnv({})).toEqual({})
    expect(providersFromEnv({ OAUTH_GOOGLE_CLIENT_ID: '', OAUTH_GITHUB_CLIENT_SECRET: 's' })).toEqual({})
    expect(Object.keys(providersFromEnv({ OAUTH_GITHUB_CLIENT_ID: 'g' }))).toEqual(['github'])
  })

  test('reads id, secret and extra audiences of both built-ins, and shares the HTTP client', async () => {
    const hosts: string[] = []
    const inner = createHttpClient()
    const httpClient: typeof inner = (url, request) => {
      hosts.push(`${new URL(url).host} ${request?.body ?? ''}`)
      return inner(provider.tokenUrl, request)
    }
    const clients = providersFromEnv(
      {
        OAUTH_GOOGLE_CLIENT_ID: 'google-id',
        OAUTH_GOOGLE_CLIENT_SECRET: 'google-secret',
        OAUTH_GOOGLE_EXTRA_AUDIENCES: '["ios-id", "android-id"]',
        OAUTH_GITHUB_CLIENT_ID: 'github-id',
        OAUTH_GITHUB_CLIENT_SECRET: 'github-secret',
      },
      { httpClient },
    )
    expect(clients['google']).toBeInstanceOf(GoogleClient)
    expect(clients['google']).toMatchObject({ clientId: 'google-id', extraAudiences: ['ios-id', 'android-id'] })
    expect(clients['github']).toBeInstanceOf(GitHubClient)
    expect(clients['github']).toMatchObject({ clientId: 'github-id', extraAudiences: [] })
    for (const client of Object.values(clients)) await client.exchangeCode({ code: 'c', redirectUri }).catch(() => undefined)
    expect(hosts[0]).toMatch(/^oauth2\.googleapis\.com .*client_id=google-id&client_secret=google-secret/)
    expect(hosts[1]).toMatch(/^github\.com .*client_id=github-id&client_secret=github-secret/)
  })

  test.each(['ios-id', '"ios-id"', '{"a":1}', '[1]', '[""]', '["a",'])('the list %s is refused without being repeated', (list) => {
    const build = () => providersFromEnv({ OAUTH_GOOGLE_CLIENT_ID: 'g', OAUTH_GOOGLE_EXTRA_AUDIENCES: list })
    expect(build).toThrow(ConfigurationError)
    expect(build).toThrow(/^OAUTH_GOOGLE_EXTRA_AUDIENCES must be a JSON list of non-empty strings, for example \["ios-client-id"\]\.$/)
  })
})
