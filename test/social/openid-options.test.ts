import { describe, expect, test } from 'vitest'
import { GitHubClient, type GitHubClientOptions, GoogleClient, OidcClient, type OidcClientOptions } from '../../src'
import type { Mounted } from '../support/app'
import { databases } from '../support/databases'
import { answer } from '../support/fake-provider'
import { begin, callBack, onDatabase } from './redirect-steps'

/** Section 19, details 19.4 and 19.9: what a host may add to the request that goes to the provider. */

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onDatabase(database, { memory: true })

const startWith = (options: Partial<OidcClientOptions>) =>
  start({ providers: { corp: (provider) => new OidcClient(provider.oidcOptions({ ...options })) } })
const seconds = (host: Mounted) => Math.floor(host.clock.now().getTime() / 1000)

test('prompt, max_age and further parameters go to the provider, beside ours', async () => {
  const host = await startWith({
    prompt: 'select_account consent',
    maxAgeSeconds: 600,
    authorizeParams: { hd: 'example.com', audience: 'a b' },
  })
  const { params } = await begin(host)
  expect(Object.fromEntries(params)).toMatchObject({
    prompt: 'select_account consent',
    max_age: '600',
    hd: 'example.com',
    audience: 'a b',
    response_type: 'code',
    code_challenge_method: 'S256',
  })
})

test('the built-in clients take them too; GitHub knows no max_age', async () => {
  const host = await start({
    providers: {
      google: (provider) => new GoogleClient({ ...provider.googleOptions(), prompt: 'consent', authorizeParams: { hd: 'example.com' } }),
      github: (provider) => new GitHubClient({ ...provider.githubOptions(), authorizeParams: { allow_signup: 'false' } }),
    },
  })
  const [google, github] = [await begin(host, { key: 'google' }), await begin(host, { key: 'github' })]
  expect([google.params.get('hd'), google.params.get('prompt'), github.params.get('allow_signup')]).toEqual([
    'example.com',
    'consent',
    'false',
  ])
  expect(() => new GitHubClient({ ...host.provider.githubOptions(), maxAgeSeconds: 1 } as GitHubClientOptions)).toThrow(/maxAgeSeconds/)
})

describe('maxAgeSeconds', () => {
  test.each([
    ['now', 0, 200],
    ['at the limit, and a minute for the clocks', 660, 200],
    ['too long ago', 661, 502],
    ['not said', null, 502],
  ])('an auth_time %s', async (_what, age, status) => {
    const host = await startWith({ maxAgeSeconds: 600 })
    host.provider.idToken = (claims) => ({ ...claims, ...(age !== null && { auth_time: seconds(host) - age }) })
    const { query, cookie } = await begin(host)
    expect((await callBack(host, query, { cookie })).status).toBe(status)
    if (status !== 200) expect(host.logs.text()).toMatch(/auth_time is (missing.*leave maxAgeSeconds out|661 s ago)/)
  })

  test('of zero asks for a sign-in each time', async () => {
    const host = await startWith({ maxAgeSeconds: 0 })
    expect((await begin(host)).params.get('max_age')).toBe('0')
  })
})

describe('login_hint', () => {
  test('is passed on by a client that says so, and by no other', async () => {
    const [passing, silent] = [await startWith({ loginHint: true }), await startWith({})]
    expect((await begin(passing, { query: { login_hint: 'ana@example.com' } })).params.get('login_hint')).toBe('ana@example.com')
    expect((await begin(passing)).params.has('login_hint')).toBe(false)
    expect((await begin(silent, { query: { login_hint: 'ana@example.com' } })).params.has('login_hint')).toBe(false)
  })

  test.each([[''], ['a b'], ['a\nb'], ['x'.repeat(321)]])('of %j is 422', async (hint) => {
    const host = await startWith({ loginHint: true })
    const response = await host.browser().get('/auth/oauth/corp/login').query({ login_hint: hint })
    expect([response.status, response.body.code, response.body.details.errors[0].path]).toEqual([422, 'VALIDATION_ERROR', 'login_hint'])
  })

  test('that comes twice is 422, and 320 characters are not too many', async () => {
    const host = await startWith({ loginHint: true })
    const twice = await host.browser().get('/auth/oauth/corp/login?login_hint=a&login_hint=b')
    expect(twice.status).toBe(422)
    expect((await begin(host, { query: { login_hint: 'x'.repeat(320) } })).params.get('login_hint')).toHaveLength(320)
  })
})

describe('a pushed request (RFC 9126)', () => {
  const pushedTo = (host: Mounted) => host.provider.requestsTo('elsewhere').filter(({ url }) => url === '/par')
  const pushing = () =>
    start({
      providers: {
        corp: (provider) =>
          new OidcClient(
            provider.oidcOptions({
              par: true,
              pushedAuthorizationUrl: `${provider.issuer}/par`,
              clientAuthentication: 'client_secret_basic',
            }),
          ),
      },
    })

  test('carries everything; the browser brings client_id and request_uri alone', async () => {
    const host = await pushing()
    host.provider.on('elsewhere', answer(201, { request_uri: 'urn:ietf:params:oauth:request_uri:abc', expires_in: 60 }))
    const login = await host.browser().get('/auth/oauth/corp/login')

    const { origin, pathname, searchParams } = new URL(String(login.headers['location']))
    expect([`${origin}${pathname}`, Object.fromEntries(searchParams)]).toEqual([
      host.provider.authorizeUrl,
      { client_id: 'client-1', request_uri: 'urn:ietf:params:oauth:request_uri:abc' },
    ])
    const [request] = pushedTo(host)
    expect(request?.headers.authorization).toMatch(/^Basic /)
    expect(Object.fromEntries(request?.form ?? [])).toMatchObject({
      client_id: 'client-1',
      response_type: 'code',
      state: expect.any(String),
      nonce: expect.any(String),
      code_challenge: expect.any(String),
      redirect_uri: expect.stringContaining('/auth/oauth/corp/callback'),
    })
  })

  test.each<[string, Parameters<typeof answer>]>([
    ['that is down', [503, 'down']],
    ['that refuses', [400, { error: 'invalid_request' }]],
    ['that answers nothing of use', [201, { expires_in: 60 }]],
    ['that answers no JSON', [200, '<html>']],
  ])('a provider %s is 502 OAUTH_PROVIDER_UNAVAILABLE, and the log says why', async (_what, [status, body]) => {
    const host = await pushing()
    host.provider.on('elsewhere', answer(status, body))
    const login = await host.browser().get('/auth/oauth/corp/login')
    expect([login.status, login.body.code]).toEqual([502, 'OAUTH_PROVIDER_UNAVAILABLE'])
    expect(host.logs.text()).toContain('The provider refused')
  })
})

test.each<[string, object, RegExp]>([
  [
    'a parameter that we set',
    { authorizeParams: { state: 'x' } },
    /authorizeParams must be an object of strings, without client_id, .*state/,
  ],
  ['a parameter with an option of its own', { authorizeParams: { prompt: 'login' } }, /authorizeParams/],
  ['a parameter that is no string', { authorizeParams: { a: 1 } }, /authorizeParams/],
  ['a list of parameters', { authorizeParams: ['a'] }, /authorizeParams/],
  ['an empty prompt', { prompt: '' }, /prompt/],
  ['a prompt with two blanks', { prompt: 'login  consent' }, /prompt/],
  ['a negative age', { maxAgeSeconds: -1 }, /maxAgeSeconds/],
  ['an age as text', { maxAgeSeconds: '600' }, /maxAgeSeconds/],
  ['an age without an id_token', { maxAgeSeconds: 600, scopes: ['email'] }, /maxAgeSeconds needs the scope 'openid'/],
  ['loginHint as text', { loginHint: 'yes' }, /loginHint/],
  ['par as text', { par: 'yes' }, /par must be/],
  ['par without an address', { par: true }, /par needs pushedAuthorizationUrl/],
])('%s is refused at construction', (_what, wrong, message) => {
  const endpoints = { authorizeUrl: 'https://idp.example/a', tokenUrl: 'https://idp.example/t' }
  // Deliberately not what the type says.
  expect(() => new OidcClient({ clientId: 'c', clientSecret: 's', ...endpoints, ...wrong } as unknown as OidcClientOptions)).toThrow(
    message,
  )
})
