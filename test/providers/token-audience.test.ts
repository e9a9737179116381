import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { AppError } from '../../src/core/errors'
import { createHttpClient } from '../../src/core/http-client'
import { GitHubClient } from '../../src/providers/github'
import { GoogleClient } from '../../src/providers/google'
import { OidcClient } from '../../src/providers/oidc-client'
import type { ProviderClient, TokenProof } from '../../src/providers/provider-client'
import { createTokenVerifier } from '../../src/providers/token-verifier'
import { answer, type FakeEndpoint, type FakeProvider, hostileAnswers, startFakeProvider, unreachableUrl } from '../support/fake-provider'

// A small deadline, so that "never answers" is quick; one client for all.
const httpClient = createHttpClient({ timeoutMs: 1_500 })
const audiences = { extraAudiences: ['our-ios-app'] }
let provider: FakeProvider

beforeAll(async () => {
  provider = await startFakeProvider()
})
afterEach(() => {
  for (const endpoint of ['introspect', 'tokeninfo', 'application', 'jwks', 'userinfo', 'user'] as const) provider.on(endpoint, null)
  provider.requests.length = 0
})
afterAll(() => provider.close())

/** Every kind of client that can check, and the one endpoint it asks. */
const kinds = {
  'Google by tokeninfo': { endpoint: 'tokeninfo', client: () => new GoogleClient(provider.googleOptions({ httpClient, ...audiences })) },
  'GitHub by its application check': {
    endpoint: 'application',
    client: () => new GitHubClient(provider.githubOptions({ httpClient, ...audiences })),
  },
  'OIDC by introspection': {
    endpoint: 'introspect',
    client: () => new OidcClient(provider.oidcOptions({ httpClient, introspectionUrl: provider.introspectionUrl, ...audiences })),
  },
  'OIDC by tokeninfo': {
    endpoint: 'tokeninfo',
    client: () => new OidcClient(provider.oidcOptions({ httpClient, tokeninfoUrl: provider.tokeninfoUrl, ...audiences })),
  },
} as const
type Kind = keyof typeof kinds
const kindNames = Object.keys(kinds) as Kind[]
const byIntrospection = kinds['OIDC by introspection'].client

/** 'ok', or the code of the refusal; and which endpoints were asked. */
async function outcomeOf(client: ProviderClient, token = 'in-hand'): Promise<[string, FakeEndpoint[]]> {
  const before = provider.requests.length
  const result = await errorOf(client, token)
  return [result?.code ?? 'ok', provider.requests.slice(before).map(({ endpoint }) => endpoint)]
}

async function errorOf(client: ProviderClient, token = 'in-hand'): Promise<AppError | null> {
  try {
    await client.verifyTokenAudience?.(token)
    return null
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
}

const seconds = () => Math.floor(Date.now() / 1000)

describe.each(kindNames)('%s', (kind) => {
  const { endpoint, client } = kinds[kind]

  test('a token of this application proceeds, with its subject, after one call', async () => {
    const token = provider.issueAccessToken()
    const proof = (await client().verifyTokenAudience(token)) as TokenProof
    expect(proof.claims?.['sub']).toBe(endpoint === 'application' ? 583231 : 'subject-1')
    expect(provider.requests.map((request) => request.endpoint)).toEqual([endpoint])
  })

  test('a token issued to another application is 401 OAUTH_TOKEN_AUDIENCE_MISMATCH, after one call', async () => {
    const token = provider.issueAccessToken({ issuedTo: 'other-app' })
    expect(await outcomeOf(client(), token)).toEqual(['OAUTH_TOKEN_AUDIENCE_MISMATCH', [endpoint]])
  })

  test('R-054: an answer is not kept: the same token is asked about again', async () => {
    const same = client()
    const token = provider.issueAccessToken()
    expect([await outcomeOf(same, token), await outcomeOf(same, token)]).toEqual([
      ['ok', [endpoint]],
      ['ok', [endpoint]],
    ])
  })

  test('R-055: an empty client id answers 501 before any network', async () => {
    const options = { httpClient, clientId: '' }
    const nobody = {
      'Google by tokeninfo': () => new GoogleClient(provider.googleOptions(options)),
      'GitHub by its application check': () => new GitHubClient(provider.githubOptions(options)),
      'OIDC by introspection': () => new OidcClient(provider.oidcOptions({ ...options, introspectionUrl: provider.introspectionUrl })),
      'OIDC by tokeninfo': () => new OidcClient(provider.oidcOptions({ ...options, tokeninfoUrl: provider.tokeninfoUrl })),
    }[kind]()
    expect(await outcomeOf(nobody, provider.issueAccessToken())).toEqual(['OAUTH_AUDIENCE_UNVERIFIABLE', []])
  })

  test('F12 to F20: down, 5xx, a redirect, or no JSON object is 502 OAUTH_PROVIDER_UNAVAILABLE, asked once, and nothing is echoed', async () => {
    const { '200 with an error': _saysNo, ...unreadable } = hostileAnswers
    const presented: string[] = []
    for (const name of Object.keys(unreadable)) {
      provider.on(endpoint, hostileAnswers[name] ?? null)
      const before = provider.requests.length
      const error = await errorOf(client(), 'secret-in-hand')
      expect([name, error?.code, provider.requests.length - before]).toEqual([name, 'OAUTH_PROVIDER_UNAVAILABLE', 1])
      presented.push(JSON.stringify(error?.details), String(error?.cause))
    }
    expect(presented.join('\n')).not.toMatch(/secret-in-hand|stolen|http:/)
  })

  test('F19: a redirect is not followed: the place it names sees nothing', async () => {
    const elsewhere = await startFakeProvider()
    for (const status of [301, 302, 303, 307, 308]) {
      provider.on(endpoint, (_request, response) => void response.writeHead(status, { location: `${elsewhere.issuer}/steal` }).end())
      expect(await outcomeOf(client())).toEqual(['OAUTH_PROVIDER_UNAVAILABLE', [endpoint]])
    }
    expect(elsewhere.requests).toEqual([])
    await elsewhere.close()
  })

  test('200 with an error is 401 OAUTH_TOKEN_REJECTED', async () => {
    const own = { azp: provider.clientId, client_id: provider.clientId, app: { client_id: provider.clientId } }
    provider.on(endpoint, answer(200, { error: 'invalid_token', ...own }))
    expect(await outcomeOf(client())).toEqual(['OAUTH_TOKEN_REJECTED', [endpoint]])
  })
})

describe('outcomes of an introspection endpoint', () => {
  const { clientId } = { clientId: 'client-1' }
  const rows: [string, number, unknown, string][] = [
    ['`active` true with `azp` among accepted ids', 200, { active: true, azp: clientId }, 'ok'],
    ['… with one of the extra audiences', 200, { active: true, azp: 'our-ios-app' }, 'ok'],
    ['… with `client_id`, as RFC 7662 has it', 200, { active: true, client_id: clientId, aud: 'https://api.example' }, 'ok'],
    ['… with `aud` alone', 200, { active: true, aud: ['https://api.example', clientId] }, 'ok'],
    ['`active` false', 200, { active: false }, 'OAUTH_TOKEN_REJECTED'],
    ['`active` "true"', 200, { active: 'true', azp: clientId }, 'OAUTH_TOKEN_REJECTED'],
    ['`active` 1', 200, { active: 1, azp: clientId }, 'OAUTH_TOKEN_REJECTED'],
    ['no `active`', 200, { azp: clientId }, 'OAUTH_TOKEN_REJECTED'],
    ["`active` true with another client's `azp`", 200, { active: true, azp: 'other', aud: clientId }, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
    ["… with another client's `client_id`", 200, { active: true, client_id: 'other', aud: clientId }, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
    ['… that names no application', 200, { active: true, sub: 'x' }, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
    ['active but expired', 200, { active: true, azp: clientId, exp: seconds() - 1 }, 'OAUTH_TOKEN_REJECTED'],
    ['active but expired, in a string', 200, { active: true, azp: clientId, exp: '1000' }, 'OAUTH_TOKEN_REJECTED'],
    ['active with an expiry that is no time', 200, { active: true, azp: clientId, exp: 'soon' }, 'OAUTH_TOKEN_REJECTED'],
    ['active but not yet', 200, { active: true, azp: clientId, nbf: seconds() + 120 }, 'OAUTH_TOKEN_REJECTED'],
    ['active since a moment', 200, { active: true, azp: clientId, nbf: seconds() + 5, exp: seconds() + 60 }, 'ok'],
    ['active, and a refresh token', 200, { active: true, azp: clientId, typ: 'Refresh' }, 'OAUTH_TOKEN_REJECTED'],
    ['4xx (for example a wrong client secret)', 401, { error: 'invalid_client' }, 'OAUTH_ERROR'],
    ['400', 400, { error: 'invalid_request' }, 'OAUTH_ERROR'],
    ['429', 429, { error: 'slow_down' }, 'OAUTH_ERROR'],
    ['5xx', 500, { active: true, azp: clientId }, 'OAUTH_PROVIDER_UNAVAILABLE'],
    ['503', 503, 'sorry', 'OAUTH_PROVIDER_UNAVAILABLE'],
    ['a non-JSON body', 200, 'active=true', 'OAUTH_PROVIDER_UNAVAILABLE'],
    ['a list', 200, [{ active: true, azp: clientId }], 'OAUTH_PROVIDER_UNAVAILABLE'],
  ]

  test('R-054: each is answered as the specification says, after one call', async () => {
    for (const [row, status, body, code] of rows) {
      provider.on('introspect', answer(status, body))
      expect([row, ...(await outcomeOf(byIntrospection()))]).toEqual([row, code, ['introspect']])
    }
    const down = new OidcClient(provider.oidcOptions({ httpClient, introspectionUrl: unreachableUrl }))
    expect(await outcomeOf(down)).toEqual(['OAUTH_PROVIDER_UNAVAILABLE', []])
  })

  test.each(['client_secret_post', 'client_secret_basic'] as const)('R-054, S26: it is asked by POST, authenticated by %s', async (way) => {
    const options = { httpClient, introspectionUrl: provider.introspectionUrl, clientAuthentication: way }
    const token = provider.issueAccessToken()
    expect(await outcomeOf(new OidcClient(provider.oidcOptions(options)), token)).toEqual(['ok', ['introspect']])

    const [request] = provider.requests
    const byHeader = way === 'client_secret_basic'
    expect([request?.method, request?.url]).toEqual(['POST', '/introspect'])
    expect(request?.headers['content-type']).toBe('application/x-www-form-urlencoded')
    expect(request?.headers.authorization).toEqual(byHeader ? expect.stringMatching(/^Basic /) : undefined)
    expect([...(request?.form.keys() ?? [])].sort()).toEqual(
      byHeader ? ['token', 'token_type_hint'] : ['client_id', 'client_secret', 'token', 'token_type_hint'],
    )
    expect(request?.form.get('token')).toBe(token)

    const wrong = new OidcClient({ ...provider.oidcOptions(options), clientSecret: 'a wrong secret' })
    expect(await outcomeOf(wrong, token)).toEqual(['OAUTH_ERROR', ['introspect']])
  })

  test('what it refuses is told as far as it holds nothing of ours: the status, and the body without token and secret', async () => {
    provider.on('introspect', (request, response) =>
      answer(401, { error: 'invalid_client', seen: request.body, auth: request.headers.authorization ?? '' })(request, response),
    )
    for (const clientAuthentication of ['client_secret_post', 'client_secret_basic'] as const) {
      const options = provider.oidcOptions({ httpClient, introspectionUrl: provider.introspectionUrl, clientAuthentication })
      const error = await errorOf(new OidcClient(options), 'secret-in-hand')
      expect(error).toMatchObject({ code: 'OAUTH_ERROR', details: { provider: 'oidc', status: 401, body: expect.any(String) } })
      const body = String(error?.details['body'])
      expect(body).toContain('invalid_client')
      expect(body).not.toMatch(/secret-in-hand|the.client.secret/)
      expect(body).not.toContain(provider.requests.at(-1)?.headers.authorization?.slice(6) ?? 'no header')
    }
  })
})

describe('outcomes of a tokeninfo endpoint', () => {
  const byTokeninfo = kinds['OIDC by tokeninfo'].client

  test('each is answered as the contract says, after one call', async () => {
    const own = { aud: 'client-1', azp: 'client-1' }
    const rows: [number, unknown, string][] = [
      [200, own, 'ok'],
      [200, { ...own, azp: 'our-ios-app', exp: String(seconds() + 60) }, 'ok'],
      [200, { ...own, azp: 'other' }, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
      [200, { aud: 'other' }, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
      [200, {}, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
      [200, { ...own, exp: String(seconds() - 1) }, 'OAUTH_TOKEN_REJECTED'],
      [200, { ...own, active: true }, 'ok'],
      [200, { ...own, active: false }, 'OAUTH_TOKEN_REJECTED'],
      ...[400, 401, 403, 404, 422, 429].map((status): [number, unknown, string] => [status, own, 'OAUTH_TOKEN_REJECTED']),
      ...[500, 502, 503].map((status): [number, unknown, string] => [status, own, 'OAUTH_PROVIDER_UNAVAILABLE']),
      [200, 'aud=client-1', 'OAUTH_PROVIDER_UNAVAILABLE'],
    ]
    for (const [status, body, code] of rows) {
      provider.on('tokeninfo', answer(status, body))
      expect([status, body, ...(await outcomeOf(byTokeninfo()))]).toEqual([status, body, code, ['tokeninfo']])
    }
  })

  test('S25: is asked by GET with the token in the query, and nothing of ours goes along', async () => {
    const token = 'a+b/c=%20&d'
    const tokeninfoUrl = `${provider.tokeninfoUrl}?access_token=preset&v=3`
    await outcomeOf(new OidcClient(provider.oidcOptions({ httpClient, tokeninfoUrl })), token)
    const [request] = provider.requests
    const query = new URL(request?.url ?? '', provider.issuer).searchParams
    expect([request?.method, request?.headers.authorization, request?.body]).toEqual(['GET', undefined, ''])
    expect([...query]).toEqual([
      ['access_token', token],
      ['v', '3'],
    ])
  })
})

describe('outcomes of the application check', () => {
  const byApplication = kinds['GitHub by its application check'].client

  test('each is answered as the contract says, after one call', async () => {
    const rows: [number, unknown, string][] = [
      [200, {}, 'ok'],
      [200, { app: { client_id: 'client-1' } }, 'ok'],
      [200, { app: { client_id: 'other' } }, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
      // GitHub speaks for one application: a second id of ours is another application to it.
      [200, { app: { client_id: 'our-ios-app' } }, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
      [404, { message: 'Not Found' }, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
      [401, { message: 'Bad credentials' }, 'OAUTH_ERROR'],
      [403, { message: 'Forbidden' }, 'OAUTH_ERROR'],
      [400, {}, 'OAUTH_TOKEN_REJECTED'],
      [422, { message: 'Validation Failed' }, 'OAUTH_TOKEN_REJECTED'],
      [500, {}, 'OAUTH_PROVIDER_UNAVAILABLE'],
      [200, 'yes', 'OAUTH_PROVIDER_UNAVAILABLE'],
    ]
    for (const [status, body, code] of rows) {
      provider.on('application', answer(status, body))
      expect([status, body, ...(await outcomeOf(byApplication()))]).toEqual([status, body, code, ['application']])
    }
  })

  test('is a POST for this client id, with Basic auth of id and secret as they are, and the token in the body alone', async () => {
    await outcomeOf(byApplication(), 'in-hand')
    const [request] = provider.requests
    expect([request?.method, request?.url, JSON.parse(request?.body ?? '')]).toEqual([
      'POST',
      '/api/applications/client-1/token',
      { access_token: 'in-hand' },
    ])
    const basic = Buffer.from(`client-1:${provider.clientSecret}`).toString('base64')
    expect(request?.headers).toMatchObject({
      authorization: `Basic ${basic}`,
      'content-type': 'application/json',
      'user-agent': 'doorward',
    })
  })

  test('a client id is one path segment, whatever it holds', async () => {
    const odd = new GitHubClient(provider.githubOptions({ httpClient, clientId: '../a/b?c' }))
    await outcomeOf(odd)
    expect(provider.requests[0]?.url).toBe('/api/applications/..%2Fa%2Fb%3Fc/token')
  })
})

describe('a generic OIDC client', () => {
  const verifier = () => createTokenVerifier({ issuer: provider.issuer, jwksUri: provider.jwksUri, algorithms: ['RS256'], httpClient })
  const client = (options: object = {}) => new OidcClient(provider.oidcOptions({ httpClient, ...audiences, ...options }))
  const jwt = (claims: object = {}) => provider.signJwt({ ...provider.idTokenClaims(), scope: 'openid', ...claims })

  test('the offline verifier if there is one; otherwise introspection; otherwise tokeninfo; with none of these 501', async () => {
    const { introspectionUrl, tokeninfoUrl } = provider
    const opaque = provider.issueAccessToken()
    expect(await outcomeOf(client({ tokenVerifier: verifier(), introspectionUrl }), jwt())).toEqual(['ok', ['jwks']])
    expect(await outcomeOf(client({ introspectionUrl }), opaque)).toEqual(['ok', ['introspect']])
    expect(await outcomeOf(client({ tokeninfoUrl }), opaque)).toEqual(['ok', ['tokeninfo']])
    expect(await outcomeOf(client(), opaque)).toEqual(['OAUTH_AUDIENCE_UNVERIFIABLE', []])
    // No second opinion: what the verifier refuses, introspection is not asked about.
    expect(await outcomeOf(client({ tokenVerifier: verifier(), introspectionUrl }), opaque)).toEqual(['OAUTH_TOKEN_REJECTED', []])
  })

  test('R-051: aud, azp and client_id of a verified token are checked together, without another call', async () => {
    const checked = client({ tokenVerifier: verifier() })
    await outcomeOf(checked, jwt())
    const rows: [object, string][] = [
      [{ aud: 'client-1' }, 'ok'],
      [{ aud: ['https://api.example', 'our-ios-app'] }, 'ok'],
      [{ aud: 'https://api.example', client_id: 'client-1' }, 'ok'],
      [{ aud: 'account', azp: 'our-ios-app' }, 'ok'],
      [{ aud: 'client-1', azp: 'other' }, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
      [{ aud: ['client-1', 'other'], client_id: 'other' }, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
      [{ aud: 'other' }, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
      [{ aud: undefined }, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
    ]
    for (const [claims, code] of rows) expect([claims, ...(await outcomeOf(checked, jwt(claims)))]).toEqual([claims, code, []])
  })

  test('an id_token is no access token in hand: aud alone names us, unless azp, client_id, scope or scp is there, or typ at+jwt', async () => {
    const checked = client({ tokenVerifier: verifier() })
    const bare = { scope: undefined }
    await outcomeOf(checked, jwt())
    expect(await outcomeOf(checked, jwt(bare))).toEqual(['OAUTH_TOKEN_REJECTED', []])
    for (const said of [{ azp: 'client-1' }, { client_id: 'client-1' }, { scope: '' }, { scp: ['read'] }])
      expect([said, ...(await outcomeOf(checked, jwt({ ...bare, ...said })))]).toEqual([said, 'ok', []])
    for (const typ of ['at+jwt', 'application/AT+JWT'])
      expect(await outcomeOf(checked, provider.signJwt(provider.idTokenClaims(), { header: { typ } }))).toEqual(['ok', []])
    expect(await outcomeOf(checked, jwt({ ...bare, aud: 'other' }))).toEqual(['OAUTH_TOKEN_AUDIENCE_MISMATCH', []])
  })

  test('error mapping of offline verification: row by row, with what it costs', async () => {
    const noKey = { keys: [] }
    const past = { exp: seconds() - 1 }
    const header = (members: object) => provider.signJwt(provider.idTokenClaims(), { header: members as Record<string, unknown> })
    const other = await startFakeProvider() // same keys, another issuer
    const rows: [string, string, FakeEndpoint[], string, ReturnType<typeof answer>?][] = [
      ['key set 5xx', 'OAUTH_PROVIDER_UNAVAILABLE', ['jwks'], jwt(), answer(503, noKey)],
      ['key set non-2xx', 'OAUTH_PROVIDER_UNAVAILABLE', ['jwks'], jwt(), answer(404, noKey)],
      ['key set non-JSON', 'OAUTH_PROVIDER_UNAVAILABLE', ['jwks'], jwt(), answer(200, 'keys')],
      ['no signing key', 'OAUTH_PROVIDER_UNAVAILABLE', ['jwks'], jwt(), answer(200, noKey)],
      ['`kid` absent from the key set that was read', 'OAUTH_TOKEN_REJECTED', ['jwks'], header({ kid: 'other' })],
      ['malformed token', 'OAUTH_TOKEN_REJECTED', [], 'a.b.c'],
      ['not a JWT', 'OAUTH_TOKEN_REJECTED', [], 'opaque'],
      ['alg outside the list', 'OAUTH_TOKEN_REJECTED', [], header({ alg: 'PS256' })],
      ['alg none', 'OAUTH_TOKEN_REJECTED', [], header({ alg: 'none' })],
      ['bad signature', 'OAUTH_TOKEN_REJECTED', ['jwks'], jwt().replace(/.{8}$/, 'AAAAAAAA')],
      ['bad `iss`', 'OAUTH_TOKEN_REJECTED', ['jwks'], provider.signJwt(other.idTokenClaims())],
      ['bad `exp`', 'OAUTH_TOKEN_REJECTED', ['jwks'], jwt(past)],
      ['a missing required claim', 'OAUTH_TOKEN_REJECTED', ['jwks'], jwt({ sub: undefined })],
      ['`aud` of another application', 'OAUTH_TOKEN_AUDIENCE_MISMATCH', ['jwks'], jwt({ aud: 'other' })],
      ['`azp` of another application', 'OAUTH_TOKEN_AUDIENCE_MISMATCH', ['jwks'], jwt({ azp: 'other' })],
      ['none of it', 'ok', ['jwks'], jwt()],
    ]
    for (const [row, code, calls, token, keySet] of rows) {
      provider.on('jwks', keySet ?? null)
      expect([row, ...(await outcomeOf(client({ tokenVerifier: verifier() }), token))]).toEqual([row, code, calls])
    }
    const jwksUri = unreachableUrl
    const tokenVerifier = createTokenVerifier({ issuer: provider.issuer, jwksUri, algorithms: ['RS256'], httpClient })
    expect(await outcomeOf(client({ tokenVerifier }), jwt())).toEqual(['OAUTH_PROVIDER_UNAVAILABLE', []])
    await other.close()
  })

  test('the profile is read from the verified claims: no call to userinfo', async () => {
    const checked = client({ tokenVerifier: verifier() })
    const accessToken = jwt({ name: 'From The Token' })
    const proof = await checked.verifyTokenAudience(accessToken)
    const rest = { tokenType: 'bearer', refreshToken: null, idToken: null, expiresIn: null, scope: null, raw: {} }
    await expect(checked.fetchUser({ accessToken, ...rest, proof })).resolves.toMatchObject({
      subject: 'subject-1',
      name: 'From The Token',
    })
    expect(provider.requests.map(({ endpoint }) => endpoint)).toEqual(['jwks'])
  })
})
