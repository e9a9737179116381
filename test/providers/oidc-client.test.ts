import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ConfigurationError, NotImplementedError, OAuthError, OAuthProviderUnavailableError } from '../../src/core/errors'
import { createHttpClient } from '../../src/core/http-client'
import { OidcClient, type OidcClientOptions } from '../../src/providers/oidc-client'
import type { OAuthTokens, OAuthUser } from '../../src/providers/provider-client'
import { createTokenVerifier } from '../../src/providers/token-verifier'
import { answer, challengeOf, type FakeProvider, startFakeProvider } from '../support/fake-provider'

const redirectUri = 'https://app.example.com/auth/oauth/corp/callback'
let provider: FakeProvider

beforeEach(async () => {
  provider = await startFakeProvider()
})
afterEach(() => provider.close())

const tokensInHand = (accessToken: string, idToken: string | null = null): OAuthTokens => ({
  accessToken,
  tokenType: 'bearer',
  refreshToken: null,
  idToken,
  expiresIn: null,
  scope: null,
  raw: {},
})

async function logIn(client: OidcClient, code = provider.issueCode()): Promise<OAuthUser> {
  return client.fetchUser(await client.exchangeCode({ code, redirectUri }))
}

describe('the settings of a generic provider client', () => {
  test('client_id and client_secret are the credentials, sent in the request body (client_secret_post)', async () => {
    await new OidcClient(provider.oidcOptions()).exchangeCode({ code: provider.issueCode(), redirectUri })

    const [request] = provider.requestsTo('token')
    expect(Object.fromEntries(request?.form ?? [])).toMatchObject({
      grant_type: 'authorization_code',
      client_id: provider.clientId,
      client_secret: provider.clientSecret,
      redirect_uri: redirectUri,
    })
    expect(request?.headers.authorization).toBeUndefined()
    expect(request?.headers['accept-encoding']).toBe('identity')
  })

  test('client_secret_basic sends them form-encoded in the header and nowhere else', async () => {
    const client = new OidcClient(provider.oidcOptions({ clientAuthentication: 'client_secret_basic' as const }))
    await client.exchangeCode({ code: provider.issueCode(), redirectUri })

    const [request] = provider.requestsTo('token')
    // The secret holds a colon, a plus, a slash, an ampersand and a blank: RFC 6749 section 2.3.1 encodes them first.
    const expected = Buffer.from('client-1:the+client+secret%3A+%2B%2F%26%3D').toString('base64')
    expect(request?.headers.authorization).toBe(`Basic ${expected}`)
    expect(request?.form.has('client_id')).toBe(false)
    expect(request?.form.has('client_secret')).toBe(false)
  })

  test('redirect_uri is the registered callback URL, kept byte for byte', () => {
    const client = new OidcClient(provider.oidcOptions({ redirectUri: 'https://APP.example.com:443/callback/' }))
    expect(client.redirectUri).toBe('https://APP.example.com:443/callback/')
    expect(new OidcClient(provider.oidcOptions()).redirectUri).toBeUndefined()
  })

  test('authorize_url and token_url are required', () => {
    const { authorizeUrl, tokenUrl, ...rest } = provider.oidcOptions()
    expect(() => new OidcClient({ ...rest, tokenUrl } as OidcClientOptions)).toThrow(/authorizeUrl/)
    expect(() => new OidcClient({ ...rest, authorizeUrl } as OidcClientOptions)).toThrow(/tokenUrl/)
  })

  test('userinfo_url: the profile is what it answers to the bearer token', async () => {
    provider.on('userinfo', answer(200, { ...provider.profile, name: 'From userinfo' }))
    const user = await logIn(new OidcClient(provider.oidcOptions()))
    expect(user).toMatchObject({ provider: 'oidc', subject: 'subject-1', name: 'From userinfo', emailVerified: true })
    const [request] = provider.requestsTo('userinfo')
    expect(request?.headers.authorization).toMatch(/^Bearer access-/)
    expect(request?.url).toBe('/userinfo')
  })

  test('without userinfo_url the profile is read from the verified id_token', async () => {
    const { userinfoUrl: _userinfoUrl, ...options } = provider.oidcOptions()
    const user = await logIn(new OidcClient(options))
    expect(user).toMatchObject({ subject: 'subject-1', email: 'ana@example.com', emailVerified: true, name: 'Ana Souza' })
    expect(provider.requestsTo('userinfo')).toEqual([])
  })

  test('without userinfo_url and id_token fetching the profile is unsupported (NotImplementedError)', async () => {
    const { userinfoUrl: _userinfoUrl, ...options } = provider.oidcOptions()
    const work = logIn(new OidcClient(options), provider.issueCode({ scope: 'profile' }))
    await expect(work).rejects.toBeInstanceOf(NotImplementedError)
  })

  test('introspection_url and tokeninfo_url together are refused', () => {
    const [introspectionUrl, tokeninfoUrl] = ['https://idp.example/introspect', 'https://idp.example/tokeninfo']
    expect(() => new OidcClient(provider.oidcOptions({ introspectionUrl, tokeninfoUrl }))).toThrow(ConfigurationError)
    expect(() => new OidcClient(provider.oidcOptions({ introspectionUrl }))).not.toThrow()
    expect(() => new OidcClient(provider.oidcOptions({ tokeninfoUrl }))).not.toThrow()
  })

  test('token_verifier: the profile is the verified claims of the access token, without a call to userinfo', async () => {
    const { issuer, jwksUri } = provider
    const tokenVerifier = createTokenVerifier({ issuer, jwksUri, algorithms: ['RS256'] })
    const client = new OidcClient(provider.oidcOptions({ tokenVerifier }))
    const claims = { ...provider.idTokenClaims(), name: 'From the access token' }

    const user = await client.fetchUser(tokensInHand(provider.signJwt(claims)))

    expect(user).toMatchObject({ subject: 'subject-1', name: 'From the access token' })
    expect(provider.requestsTo('userinfo')).toEqual([])
    // In hand a bad token is the caller's fault; after a code exchange it is the provider's.
    await expect(client.fetchUser(tokensInHand('opaque'))).rejects.toMatchObject({ code: 'OAUTH_TOKEN_REJECTED' })
    await expect(logIn(client)).rejects.toMatchObject({ code: 'OAUTH_ERROR' })
  })

  test('provider_name defaults to oidc, scopes to openid email profile, pkce to on', () => {
    const client = new OidcClient(provider.oidcOptions())
    expect(client).toMatchObject({ providerName: 'oidc', scopes: ['openid', 'email', 'profile'], pkce: true })
    const other = new OidcClient(provider.oidcOptions({ providerName: 'oidc:corp', scopes: ['openid'], pkce: false }))
    expect(other).toMatchObject({ providerName: 'oidc:corp', scopes: ['openid'], pkce: false })
  })

  test('http_client is shared: every call of the client goes through it', async () => {
    const calls: string[] = []
    const inner = createHttpClient()
    const httpClient: typeof inner = (url, request) => {
      calls.push(new URL(url).pathname)
      return inner(url, request)
    }
    await logIn(new OidcClient(provider.oidcOptions({ httpClient })))
    expect(calls).toEqual(['/token', '/jwks', '/userinfo'])
  })

  test('trustEmail false makes what the provider says of the email null', async () => {
    const user = await logIn(new OidcClient(provider.oidcOptions({ trustEmail: false })))
    expect(user).toMatchObject({ email: 'ana@example.com', emailVerified: null })
  })

  test('an empty client id can be built, but exchanges nothing', async () => {
    const client = new OidcClient(provider.oidcOptions({ clientId: '' }))
    await expect(client.exchangeCode({ code: 'c', redirectUri })).rejects.toBeInstanceOf(NotImplementedError)
    expect(provider.requests).toEqual([])
  })

  test('an empty client secret is left out of the request', async () => {
    const client = new OidcClient(provider.oidcOptions({ clientSecret: '' }))
    await expect(client.exchangeCode({ code: 'c', redirectUri })).rejects.toBeInstanceOf(OAuthError)
    expect(provider.requestsTo('token')[0]?.form.has('client_secret')).toBe(false)
  })

  test.each([
    ['an unknown option', { userInfoUrl: 'https://idp.example/userinfo' }, /unknown option userInfoUrl/],
    ['the endpoints of the built-ins', { endpoints: {} }, /unknown option endpoints/],
    ['a missing client id', { clientId: undefined }, /clientId/],
    ['plain http beyond loopback', { tokenUrl: 'http://idp.example/token' }, /tokenUrl.*https/],
    ['a host that only looks like loopback', { tokenUrl: 'http://127.0.0.1.evil.example/token' }, /tokenUrl/],
    ['a relative URL', { authorizeUrl: '/authorize' }, /authorizeUrl/],
    ['a URL without slashes', { authorizeUrl: 'https:idp.example' }, /authorizeUrl/],
    ['credentials in a URL', { userinfoUrl: 'https://u:p@idp.example/userinfo' }, /userinfoUrl/],
    ['a fragment in a URL', { jwksUri: 'https://idp.example/jwks#a' }, /jwksUri/],
    ['a line break in a URL', { jwksUri: 'https://idp.example/jw\nks' }, /jwksUri/],
    ['another scheme', { redirectUri: 'javascript:alert(1)' }, /redirectUri/],
    ['extra audiences as one string', { extraAudiences: 'client-2' }, /extraAudiences/],
    ['an empty extra audience', { extraAudiences: [''] }, /extraAudiences/],
    ['scopes as one string', { scopes: 'openid email' }, /scopes/],
    ['a blank inside a scope', { scopes: ['openid email'] }, /scopes/],
    ['a verifier that verifies nothing', { tokenVerifier: {} }, /tokenVerifier/],
    ['an HTTP client that is not a function', { httpClient: {} }, /httpClient/],
    ['pkce as text', { pkce: 'false' }, /pkce/],
    ['trustEmail as text', { trustEmail: 'false' }, /trustEmail/],
  ])('%s is refused at construction, naming the option', (_what, wrong, message) => {
    // Deliberately not what the type says.
    const options = { ...provider.oidcOptions(), ...wrong } as unknown as OidcClientOptions
    expect(() => new OidcClient(options)).toThrow(ConfigurationError)
    expect(() => new OidcClient(options)).toThrow(message)
  })
})

describe('the code exchange', () => {
  test('sends the PKCE verifier and returns the tokens of the provider', async () => {
    const codeVerifier = 'v'.repeat(43)
    const code = provider.issueCode({ codeChallenge: challengeOf(codeVerifier), redirectUri, nonce: 'n-1' })
    const tokens = await new OidcClient(provider.oidcOptions()).exchangeCode({ code, redirectUri, codeVerifier, nonce: 'n-1' })
    expect(tokens).toMatchObject({ tokenType: 'Bearer', expiresIn: 3600, scope: 'openid email profile' })
    expect(tokens.accessToken).toMatch(/^access-/)
    expect(tokens.raw['access_token']).toBe(tokens.accessToken)
  })

  test.each([
    ['no access token', { token_type: 'bearer' }],
    ['an empty access token', { access_token: '', token_type: 'bearer' }],
    ['an access token that is an object', { access_token: {}, token_type: 'bearer' }],
    ['a line break in the access token', { access_token: 'a\r\nb', token_type: 'bearer' }],
    ['no token type', { access_token: 'a' }],
    ['another token type', { access_token: 'a', token_type: 'mac' }],
    ['an error beside a token', { access_token: 'a', token_type: 'bearer', error: 'invalid_grant' }],
    ['an id_token that is an object', { access_token: 'a', token_type: 'bearer', id_token: {} }],
  ])('%s is refused', async (_what, content) => {
    provider.on('token', answer(200, content))
    const work = new OidcClient(provider.oidcOptions()).exchangeCode({ code: 'c', redirectUri })
    await expect(work).rejects.toMatchObject({ code: 'OAUTH_ERROR', details: { provider: 'oidc', status: 200 } })
  })

  test('a __proto__ member is refused: Object.assign would obey it', async () => {
    provider.on('token', answer(200, '{"access_token":"a","token_type":"bearer","__proto__":{"isAdmin":true}}'))
    await expect(new OidcClient(provider.oidcOptions()).exchangeCode({ code: 'c', redirectUri })).rejects.toBeInstanceOf(OAuthError)
  })

  test('brackets inside a string are not nesting', async () => {
    provider.profile['name'] = `"${'['.repeat(100)}`
    await expect(logIn(new OidcClient(provider.oidcOptions()))).resolves.toMatchObject({ name: provider.profile['name'] })
  })

  test('a profile beside an error is refused', async () => {
    provider.on('userinfo', answer(200, { ...provider.profile, error: 'insufficient_scope' }))
    await expect(logIn(new OidcClient(provider.oidcOptions()))).rejects.toMatchObject({ details: { provider: 'oidc', status: 200 } })
  })

  test('optional members of another type are null, and a number in quotes is a number', async () => {
    provider.on('token', answer(200, { access_token: 'a', token_type: 'BEARER', expires_in: '3599', scope: ['x'], refresh_token: 7 }))
    const tokens = await new OidcClient(provider.oidcOptions()).exchangeCode({ code: 'c', redirectUri })
    expect(tokens).toMatchObject({ expiresIn: 3599, scope: null, refreshToken: null, idToken: null })
  })
})

describe('an id_token that comes back', () => {
  const now = () => Math.floor(Date.now() / 1000)
  const mutations: [string, (claims: Record<string, unknown>) => string | Record<string, unknown>][] = [
    ['of another issuer', (claims) => ({ ...claims, iss: 'https://other.example' })],
    ['without issuer', ({ iss: _iss, ...claims }) => claims],
    ['for another client', (claims) => ({ ...claims, aud: 'client-2' })],
    ['for a client whose id only contains ours', (claims) => ({ ...claims, aud: 'client-11' })],
    ['without audience', ({ aud: _aud, ...claims }) => claims],
    ['for several clients without azp', (claims) => ({ ...claims, aud: ['client-1', 'client-2'] })],
    ['issued to another party', (claims) => ({ ...claims, azp: 'client-2' })],
    ['that has expired', (claims) => ({ ...claims, exp: now() - 1 })],
    ['without expiry', ({ exp: _exp, ...claims }) => claims],
    ['with an expiry in words', (claims) => ({ ...claims, exp: String(now() + 300) })],
    ['issued in the future', (claims) => ({ ...claims, iat: now() + 120 })],
    ['without iat', ({ iat: _iat, ...claims }) => claims],
    ['not valid yet', (claims) => ({ ...claims, nbf: now() + 120 })],
    ['with the nonce of another login', (claims) => ({ ...claims, nonce: 'n-2' })],
    ['without nonce', ({ nonce: _nonce, ...claims }) => claims],
    ['with a nonce in a list', (claims) => ({ ...claims, nonce: ['n-1'] })],
    ['without subject', ({ sub: _sub, ...claims }) => claims],
    ['whose subject is an object', (claims) => ({ ...claims, sub: { id: 1 } })],
    ['with alg none', (claims) => provider.signJwt(claims, { header: { alg: 'none' } })],
    ['signed with the client secret', (claims) => provider.signJwt(claims, { header: { alg: 'HS256' }, key: provider.clientSecret })],
    ['with a critical extension', (claims) => provider.signJwt(claims, { header: { crit: ['exp'] } })],
    ['that is not a JWT', () => 'not-a-jwt'],
    ['whose payload is null', () => provider.signJwt(null)],
    ['whose payload is a list', () => provider.signJwt([])],
    ['that is far too long', (claims) => ({ ...claims, padding: 'x'.repeat(20_000) })],
  ]
  const signatures: typeof mutations = [
    ['whose signature was altered', (claims) => provider.signJwt(claims).replace(/.{6}$/, 'AAAAAA')],
    [
      'whose claims were altered',
      (claims) => `${provider.signJwt(claims).replace(/\.[^.]*\./, `.${encode({ ...claims, sub: 'victim' })}.`)}`,
    ],
    ['of a key nobody published', (claims) => provider.signJwt(claims, { header: { kid: 'other' } })],
    ['signed for another algorithm of the same key', (claims) => provider.signJwt(claims, { header: { alg: 'PS256' } })],
  ]
  const encode = (claims: unknown) => Buffer.from(JSON.stringify(claims)).toString('base64url')
  const exchange = (options: OidcClientOptions) =>
    new OidcClient(options).exchangeCode({ code: provider.issueCode({ nonce: 'n-1' }), redirectUri, nonce: 'n-1' })

  test('is accepted when everything is right, with and without known keys', async () => {
    const { jwksUri: _jwksUri, ...withoutKeys } = provider.oidcOptions()
    await expect(exchange(provider.oidcOptions())).resolves.toMatchObject({ tokenType: 'Bearer' })
    await expect(exchange(withoutKeys)).resolves.toMatchObject({ tokenType: 'Bearer' })
    expect(provider.requestsTo('jwks').length).toBe(1)
  })

  test('may name several audiences when we are the authorized party', async () => {
    provider.idToken = (claims) => ({ ...claims, aud: ['client-1', 'api'], azp: 'client-1' })
    await expect(exchange(provider.oidcOptions())).resolves.toMatchObject({ tokenType: 'Bearer' })
  })

  test.each(mutations)('%s is refused, with and without known keys', async (_what, mutate) => {
    provider.idToken = mutate
    const { jwksUri: _jwksUri, ...withoutKeys } = provider.oidcOptions()
    for (const options of [provider.oidcOptions(), withoutKeys]) {
      const details = { provider: 'oidc', status: null, body: null }
      await expect(exchange(options)).rejects.toMatchObject({ status: 502, code: 'OAUTH_ERROR', details })
    }
  })

  test.each(signatures)('%s is refused where the keys are known', async (_what, mutate) => {
    provider.idToken = mutate
    await expect(exchange(provider.oidcOptions())).rejects.toMatchObject({ code: 'OAUTH_ERROR' })
  })

  test('is not checked for a nonce that was never sent', async () => {
    const code = provider.issueCode({ nonce: 'whatever' })
    await expect(new OidcClient(provider.oidcOptions()).exchangeCode({ code, redirectUri })).resolves.toBeDefined()
  })

  test('a userinfo answer about another subject is refused', async () => {
    provider.on('userinfo', answer(200, { ...provider.profile, sub: 'subject-2' }))
    await expect(logIn(new OidcClient(provider.oidcOptions()))).rejects.toMatchObject({ code: 'OAUTH_ERROR' })
  })

  test('handed to fetchUser from elsewhere is believed only by its signature', async () => {
    const { userinfoUrl: _userinfoUrl, ...options } = provider.oidcOptions()
    const { jwksUri: _jwksUri, ...withoutKeys } = options
    const tokens = tokensInHand('a', provider.signJwt(provider.idTokenClaims()))
    await expect(new OidcClient(options).fetchUser(tokens)).resolves.toMatchObject({ subject: 'subject-1' })
    await expect(new OidcClient(withoutKeys).fetchUser(tokens)).rejects.toMatchObject({ code: 'OAUTH_ERROR' })
  })
})

describe('parseUser', () => {
  class EmployeeClient extends OidcClient {
    seen: Record<string, unknown>[] = []
    protected override parseUser(claims: Record<string, unknown>, tokens: OAuthTokens): OAuthUser {
      this.seen.push(claims)
      return { ...super.parseUser(claims, tokens), subject: String(claims['employee']), provider: 'ignored' }
    }
  }

  test('gets verified claims and may read others; its result is normalised again', async () => {
    provider.profile['employee'] = 'e-7'
    const client = new EmployeeClient(provider.oidcOptions({ trustEmail: false }))
    await expect(logIn(client)).resolves.toMatchObject({ subject: 'e-7', provider: 'oidc', emailVerified: null })
    expect(client.seen).toEqual([expect.objectContaining({ ...provider.profile, iss: provider.issuer })])
  })

  test('is never called with an id_token that failed its checks', async () => {
    provider.idToken = (claims) => ({ ...claims, aud: 'client-2' })
    const { userinfoUrl: _userinfoUrl, ...options } = provider.oidcOptions()
    const client = new EmployeeClient(options)
    await expect(logIn(client)).rejects.toBeInstanceOf(OAuthError)
    expect(client.seen).toEqual([])
  })

  test('that returns no usable subject is 502 OAUTH_ERROR', async () => {
    class BrokenClient extends OidcClient {
      protected override parseUser(): OAuthUser {
        return null as unknown as OAuthUser // what a host may do in JavaScript
      }
    }
    await expect(logIn(new BrokenClient(provider.oidcOptions()))).rejects.toMatchObject({ code: 'OAUTH_ERROR' })
  })
})

describe('discover', () => {
  const options = () => ({ clientId: provider.clientId, clientSecret: provider.clientSecret })

  test('makes a client that checks signatures with the published keys', async () => {
    const client = await OidcClient.discover(provider.issuer, options())
    await expect(logIn(client)).resolves.toMatchObject({ subject: 'subject-1' })
    expect(provider.requestsTo('jwks').length).toBe(1)
    provider.idToken = (claims) => provider.signJwt(claims).replace(/.{6}$/, 'AAAAAA')
    await expect(logIn(client)).rejects.toMatchObject({ code: 'OAUTH_ERROR' })
  })

  test('called on a subclass makes one of the subclass', async () => {
    class CorpClient extends OidcClient {}
    await expect(CorpClient.discover(provider.issuer, options())).resolves.toBeInstanceOf(CorpClient)
  })

  const description = () => ({
    issuer: provider.issuer,
    authorization_endpoint: provider.authorizeUrl,
    token_endpoint: provider.tokenUrl,
    jwks_uri: provider.jwksUri,
  })

  test.each([
    ['of another issuer', () => ({ ...description(), issuer: 'https://other.example' })],
    ['whose issuer differs by a slash', () => ({ ...description(), issuer: `${provider.issuer}/` })],
    ['without keys', () => ({ ...description(), jwks_uri: undefined })],
    ['with an insecure token endpoint', () => ({ ...description(), token_endpoint: 'http://idp.example/token' })],
    ['with an endpoint that is not text', () => ({ ...description(), authorization_endpoint: 7 })],
  ])('a description %s is a ConfigurationError', async (_what, document) => {
    provider.on('discovery', answer(200, document()))
    await expect(OidcClient.discover(provider.issuer, options())).rejects.toBeInstanceOf(ConfigurationError)
  })

  test.each([
    ['is missing', answer(404, 'no such page')],
    ['is not JSON', answer(200, '<html>')],
    ['is elsewhere', answer(302, '', { location: 'https://other.example/' })],
  ])('a description that %s makes the provider unavailable', async (_what, handler) => {
    provider.on('discovery', handler)
    await expect(OidcClient.discover(provider.issuer, options())).rejects.toBeInstanceOf(OAuthProviderUnavailableError)
  })

  test('an insecure issuer is refused before any call', async () => {
    await expect(OidcClient.discover('http://idp.example', options())).rejects.toBeInstanceOf(ConfigurationError)
  })
})

test('connections are reused: the 21 calls of ten logins take a few connections', async () => {
  const client = new OidcClient(provider.oidcOptions())
  for (let login = 0; login < 10; login += 1) await logIn(client)
  expect(provider.requestsTo('token').length).toBe(10)
  expect(provider.connectionCount).toBeLessThanOrEqual(3)
})

test('a client that is printed shows no secret', () => {
  const client = new OidcClient(provider.oidcOptions({ clientSecret: 'very-secret' }))
  expect(inspect(client, { depth: 10, showHidden: true })).not.toContain('very-secret')
  expect(JSON.stringify(client)).not.toContain('very-secret')
})
