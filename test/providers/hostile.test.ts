import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { OAuthError, OAuthProviderUnavailableError } from '../../src/core/errors'
import { createHttpClient } from '../../src/core/http-client'
import { GitHubClient } from '../../src/providers/github'
import { GoogleClient } from '../../src/providers/google'
import { OidcClient } from '../../src/providers/oidc-client'
import { createTokenVerifier } from '../../src/providers/token-verifier'
import { type FakeProvider, gzipBomb, hostileAnswers, startFakeProvider, unreachableUrl } from '../support/fake-provider'

const redirectUri = 'https://app.example.com/auth/oauth/corp/callback'
// One client for all: a small deadline, so that "never answers" is quick.
const httpClient = createHttpClient({ timeoutMs: 1_500 })
let provider: FakeProvider

beforeAll(async () => {
  provider = await startFakeProvider()
  gzipBomb() // takes more memory to make than to refuse
})
afterAll(() => provider.close())

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => expect.fail('the hostile answer was accepted'),
    (error: unknown) => error,
  )
}

/** Every kind of client the library makes, on the one fake provider. */
const kinds = {
  oidc: () => new OidcClient(provider.oidcOptions({ httpClient })),
  google: () => new GoogleClient(provider.googleOptions({ httpClient })),
  github: () => new GitHubClient(provider.githubOptions({ httpClient })),
}
type Kind = keyof typeof kinds

// A hang ends with the client's own deadline, far below that of a test.
describe.each(Object.keys(hostileAnswers))('an endpoint that answers with: %s', (name) => {
  const misbehave = (endpoint: 'token' | 'userinfo' | 'user' | 'jwks') => provider.on(endpoint, hostileAnswers[name] ?? null)

  test.each(Object.keys(kinds) as Kind[])(
    'the token endpoint of %s is refused with 502 OAUTH_ERROR, and the code is sent once',
    async (kind) => {
      misbehave('token')
      const sentBefore = provider.requestsTo('token').length
      const rssBefore = process.memoryUsage().rss

      const error = await failureOf(kinds[kind]().exchangeCode({ code: 'the-code', redirectUri }))

      expect(error).toBeInstanceOf(OAuthError)
      expect(error).toMatchObject({ status: 502, code: 'OAUTH_ERROR', details: { provider: kind } })
      expect(provider.requestsTo('token').length - sentBefore).toBe(1)
      expect(process.memoryUsage().rss - rssBefore).toBeLessThan(80 * 1024 * 1024) // the fake provider shares the process: it holds the bomb itself
      provider.on('token', null)
    },
  )

  test.each([
    ['oidc', 'userinfo'],
    ['google', 'userinfo'],
    ['github', 'user'],
  ] as const)('of %s the %s endpoint is refused with 502 OAUTH_ERROR', async (kind, endpoint) => {
    misbehave(endpoint)
    const client = kinds[kind]()
    const tokens = await client.exchangeCode({ code: provider.issueCode({ scope: 'profile' }), redirectUri })
    // An honest-looking body that names a usable subject is only refused for how it came.
    const error = await failureOf(client.fetchUser(tokens))

    expect(error).toBeInstanceOf(OAuthError)
    expect(error).toMatchObject({ status: 502, code: 'OAUTH_ERROR' })
    provider.on(endpoint, null)
  })

  test.each(['oidc', 'google'] as const)('the key set of %s is unavailable: an id_token is refused with OAUTH_ERROR', async (kind) => {
    misbehave('jwks')
    const error = await failureOf(kinds[kind]().exchangeCode({ code: provider.issueCode(), redirectUri }))
    expect(error).toMatchObject({ code: 'OAUTH_ERROR', details: { provider: kind, status: null, body: null } })
    provider.on('jwks', null)
  })

  test('the key set is unavailable: a token in hand is refused with OAUTH_PROVIDER_UNAVAILABLE', async () => {
    misbehave('jwks')
    const verifier = createTokenVerifier({ issuer: provider.issuer, jwksUri: provider.jwksUri, algorithms: ['RS256'], httpClient })
    const verifying = await failureOf(verifier.verify(provider.signJwt(provider.idTokenClaims())))
    expect(verifying).toBeInstanceOf(OAuthProviderUnavailableError)
    provider.on('jwks', null)
  })
})

test('nobody listening at the token endpoint is 502 OAUTH_ERROR without status and body', async () => {
  const tokenUrl = unreachableUrl
  const client = new OidcClient(provider.oidcOptions({ httpClient, tokenUrl }))
  const error = await failureOf(client.exchangeCode({ code: 'the-code', redirectUri }))
  expect(error).toMatchObject({ code: 'OAUTH_ERROR', details: { provider: 'oidc', status: null, body: null } })
})

test('a redirect is never followed: the place it names sees nothing', async () => {
  const elsewhere = await startFakeProvider()
  for (const status of [301, 302, 303, 307, 308]) {
    provider.on('token', (_request, response) => void response.writeHead(status, { location: `${elsewhere.issuer}/token` }).end())
    const client = new OidcClient(provider.oidcOptions({ httpClient }))
    const error = await failureOf(client.exchangeCode({ code: 'the-code', redirectUri }))
    expect(error).toMatchObject({ code: 'OAUTH_ERROR', details: { status } })
  }
  expect(elsewhere.requests).toEqual([])
  provider.on('token', null)
  await elsewhere.close()
})

test('the limits hold for a client of the host, too: whatever it returns, the answer is refused', async () => {
  const padded = (padding: string) => JSON.stringify({ access_token: 'a', token_type: 'bearer', padding })
  const nonsense: unknown[] = [
    null,
    undefined,
    'text',
    {},
    { status: 200 },
    { status: 200, body: {} },
    { status: '200', body: '{}' },
    // Tokens that would do, but for the size: in bytes, and in characters that are two bytes each.
    { status: 200, body: padded('x'.repeat(256 * 1024)) },
    { status: 200, body: Buffer.from(padded('x'.repeat(256 * 1024))) },
    { status: 200, body: padded('é'.repeat(200 * 1024)) },
  ]
  for (const response of nonsense) {
    const hostClient = async () => response as { status: number; headers: object; body: string } // deliberately not what the type says
    const client = new OidcClient(provider.oidcOptions({ httpClient: hostClient as typeof httpClient }))
    expect(await failureOf(client.exchangeCode({ code: 'c', redirectUri }))).toMatchObject({ code: 'OAUTH_ERROR' })
  }
  const throwing = () => {
    throw new Error('https://user:secret@provider.example')
  }
  const client = new OidcClient(provider.oidcOptions({ httpClient: throwing }))
  const error = await failureOf(client.exchangeCode({ code: 'c', redirectUri }))
  expect(error).toMatchObject({ code: 'OAUTH_ERROR', details: { status: null, body: null } })
  expect(String((error as Error).cause)).not.toContain('secret')
})
