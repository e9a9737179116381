import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import express from 'express'
import supertest from 'supertest'
import ts from 'typescript'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import * as doorward from '../../src'
import { AppleClient, type AppleClientOptions, type AuthRouter, ConfigurationError, createHttpClient, type Mailer } from '../../src'
import { OAuthError } from '../../src/core/errors'
import { cookiePair, type HttpResponse } from '../social/redirect-steps'
import { type Mounted, testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { answer, type FakeProvider, hostileAnswers, startFakeProvider } from '../support/fake-provider'
import { appleClaims, appleSubject, appleTokens, appleUser, relayAddress } from './apple-answers'

/** Section 19: Sign in with Apple. */
const start = appPerTest()
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pem = String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
const options: AppleClientOptions = { clientId: 'com.example.web', teamId: 'TEAM123456', keyId: 'KEY1234567', privateKey: pem }

const mounted = (client: (provider: FakeProvider) => AppleClient = (provider) => new AppleClient(provider.appleOptions())) =>
  start({ settings: { cookieSecure: true }, providers: { apple: client } })

/** What Apple's token endpoint and form say at one login; `claims` go over those of the documented id_token. */
interface Said {
  claims?: object
  user?: string | null
  error?: string
}

async function logIn(host: Mounted, { claims = {}, user = null, error }: Said = {}): Promise<HttpResponse> {
  const login = await supertest(host.app).get('/auth/oauth/apple/login')
  const location = String(login.headers['location'])
  const { state, code, params } = error === undefined ? host.provider.authorize(location) : host.provider.deny(location, error)
  const nonce = params.get('nonce')
  host.provider.idToken = ({ iss, aud, iat, exp }) => ({ iss, aud, iat, exp, nonce, ...appleClaims, ...claims })
  const cookie = `${cookiePair(login)}; ${cookiePair(login, '__Host-oauth_state_post')}`
  const form = error === undefined ? { state, code, ...(user !== null && { user }) } : { state, error }
  const posted = await supertest(host.app).post('/auth/oauth/apple/callback').set('Cookie', cookie).type('form').send(form)
  expect(posted.status).toBe(303)
  const { pathname, search } = new URL(String(posted.headers['location']))
  return supertest(host.app)
    .get(pathname + search)
    .set('Cookie', cookie)
}

const users = (host: Mounted) => host.knex('auth_users').select('email', 'name').orderBy('id')
const identity = async (host: Mounted) => (await host.knex('auth_identities'))[0]

describe('a login', () => {
  test('has the address and the subject of the id_token, and the name of the first form', async () => {
    const host = await mounted()
    const response = await logIn(host, { user: appleUser })
    expect([response.status, typeof response.body.access_token]).toEqual([200, 'string'])
    expect(await users(host)).toEqual([{ email: 'ana@example.com', name: 'Ana Souza' }])
    expect(await identity(host)).toMatchObject({ provider: 'apple', subject: appleSubject, email: 'ana@example.com' })
    const [{ email_verified_at: verifiedAt }] = await host.knex('auth_users')
    expect(verifiedAt).not.toBeNull()
  })

  test('asks for openid, name and email by form_post, with PKCE and a nonce', async () => {
    const host = await mounted()
    const { headers } = await supertest(host.app).get('/auth/oauth/apple/login')
    const query = Object.fromEntries(new URL(String(headers['location'])).searchParams)
    expect(query).toMatchObject({
      response_type: 'code',
      response_mode: 'form_post',
      scope: 'openid name email',
      code_challenge_method: 'S256',
    })
    expect(query['nonce']).toMatch(/^[\w-]{43}$/)
  })

  test('the name comes once: a later login, without a form of it or with another, keeps it', async () => {
    const host = await mounted()
    await logIn(host, { user: appleUser })
    for (const user of [null, appleUser.replace('Ana', 'Eve')]) expect((await logIn(host, { user })).status).toBe(200)
    expect(await users(host)).toEqual([{ email: 'ana@example.com', name: 'Ana Souza' }])
  })

  test('nothing of the unsigned field but the name counts', async () => {
    const host = await mounted()
    const user = JSON.stringify({ sub: 'eve', email: 'eve@example.com', email_verified: true, name: { firstName: 'Eve' } })
    await logIn(host, { claims: { email_verified: 'false' }, user })
    expect(await users(host)).toEqual([{ email: 'ana@example.com', name: 'Eve' }])
    expect(await identity(host)).toMatchObject({ subject: appleSubject, email: 'ana@example.com' })
    expect(await host.knex('auth_users').whereNotNull('email_verified_at')).toEqual([])
  })

  test.each<[string, string | null, string | null]>([
    ['no field', null, null],
    ['no JSON', '{', null],
    ['a list', '[]', null],
    ['null', 'null', null],
    ['no name', '{"email":"ana@example.com"}', null],
    ['a name that is a text', '{"name":"Ana"}', null],
    ['parts that are no text', '{"name":{"firstName":1,"lastName":{}}}', null],
    ['a first name', '{"name":{"firstName":"Ana","lastName":""}}', 'Ana'],
    ['a last name', '{"name":{"lastName":"Souza"}}', 'Souza'],
    ['control characters', '{"name":{"firstName":"A\\u0000na\\u202e","lastName":"Sou\\nza"}}', 'Ana Souza'],
    ['a long one', JSON.stringify({ name: { firstName: 'n'.repeat(900) } }), 'n'.repeat(200)],
  ])('%s in field `user` is a name or none, never a failure', async (_what, user, name) => {
    const host = await mounted()
    expect((await logIn(host, { user })).status).toBe(200)
    const [first] = await users(host)
    if (name === null) expect(first.name).not.toMatch(/Ana|Souza|object/)
    else expect(first.name).toBe(name)
  })

  test.each<[string, object, object]>([
    ['a relay address', { email: relayAddress, is_private_email: true }, { email: relayAddress, emailVerified: true }],
    ['flags that are texts', { email_verified: 'true', is_private_email: 'false' }, { email: appleClaims.email, emailVerified: true }],
    ['an address that is not verified', { email_verified: false }, { email: appleClaims.email, emailVerified: false }],
    ['the same as a text', { email_verified: 'false' }, { email: appleClaims.email, emailVerified: false }],
    ['no flag', { email_verified: undefined }, { email: appleClaims.email, emailVerified: null }],
    ['no address', { email: undefined, email_verified: undefined }, { email: null, emailVerified: null }],
    ['a name and a picture, which Apple never sends', { name: 'Eve', picture: 'https://x.example/' }, { name: null, picture: null }],
  ])('%s', async (_what, claims, expected) => {
    const provider = await startFakeProvider()
    provider.idToken = ({ iss, aud, iat, exp }) => ({ iss, aud, iat, exp, ...appleClaims, ...claims })
    const client = new AppleClient(provider.appleOptions())
    const user = await client.fetchUser(await client.exchangeCode({ code: provider.issueCode(), redirectUri: 'https://x.example' }))
    await provider.close()
    expect(user).toMatchObject({ provider: 'apple', subject: appleSubject, ...expected })
  })

  test('without an address is what a login without one is: refused', async () => {
    const host = await mounted()
    const response = await logIn(host, { claims: { email: undefined, email_verified: undefined } })
    expect([response.status, response.body.code]).toEqual([422, 'OAUTH_EMAIL_MISSING'])
  })

  test('a changed address at Apple is the same account, by its subject', async () => {
    const host = await mounted()
    await logIn(host, { user: appleUser })
    expect((await logIn(host, { claims: { email: relayAddress, is_private_email: 'true' } })).status).toBe(200)
    expect(await users(host)).toEqual([{ email: 'ana@example.com', name: 'Ana Souza' }])
  })

  test("a person's no is 401 OAUTH_PROVIDER_DENIED", async () => {
    const response = await logIn(await mounted(), { error: 'user_cancelled_authorize' })
    expect([response.status, response.body.code, response.body.details]).toEqual([401, 'OAUTH_PROVIDER_DENIED', { error: 'access_denied' }])
  })
})

describe('misbehaving endpoints', () => {
  const httpClient = createHttpClient({ timeoutMs: 300 })
  const fast = (provider: FakeProvider) => new AppleClient(provider.appleOptions({ httpClient }))

  test.each(['token', 'jwks'] as const)('whatever %s answers, the login is 502 OAUTH_ERROR, and no account', async (endpoint) => {
    const host = await mounted(fast)
    for (const [name, handler] of Object.entries(hostileAnswers)) {
      if (endpoint === 'jwks' && !name.startsWith('a 1') && !/^(null|an array|HTML|never)/.test(name)) continue
      host.provider.on(endpoint, handler)
      const response = await logIn(host)
      expect([name, response.status, response.body.code]).toEqual([name, 502, 'OAUTH_ERROR'])
    }
    expect(await users(host)).toEqual([])
  })

  test.each<[string, (provider: FakeProvider) => string | object | null]>([
    ['no id_token', () => null],
    ['an id_token of another issuer', ({ idTokenClaims }) => ({ ...idTokenClaims(), iss: 'https://evil.example' })],
    ['for another application', ({ idTokenClaims }) => ({ ...idTokenClaims(), aud: 'com.example.other' })],
    ['of another login', ({ idTokenClaims }) => ({ ...idTokenClaims(), nonce: 'another' })],
    ['without a nonce', ({ idTokenClaims }) => idTokenClaims()],
    ['of nobody', ({ idTokenClaims }) => ({ ...idTokenClaims(), sub: '' })],
    [
      'whose signature is not the provider’s',
      ({ signJwt, idTokenClaims }) => signJwt(idTokenClaims(), { key: privateKey, header: { alg: 'ES256' } }),
    ],
  ])('%s: 502', async (_what, made) => {
    const host = await mounted()
    const login = await supertest(host.app).get('/auth/oauth/apple/login')
    const { callbackForm } = host.provider.authorize(String(login.headers['location']))
    host.provider.idToken = () => made(host.provider) as Record<string, unknown> | string | null // as the fake takes it
    const cookie = `${cookiePair(login)}; ${cookiePair(login, '__Host-oauth_state_post')}`
    const posted = await supertest(host.app)
      .post('/auth/oauth/apple/callback')
      .set('Cookie', cookie)
      .type('form')
      .send(callbackForm ?? {})
    const { pathname, search } = new URL(String(posted.headers['location']))
    const response = await supertest(host.app)
      .get(pathname + search)
      .set('Cookie', cookie)
    expect([response.status, response.body.code]).toEqual([502, 'OAUTH_ERROR'])
  })

  test('a refusal of the client secret is told without it', async () => {
    const host = await mounted()
    host.provider.on('token', (request, response) => answer(400, { error: 'invalid_client', sent: request.body })(request, response))
    const response = await logIn(host)
    const secret = String(host.provider.requestsTo('token')[0]?.form.get('client_secret'))
    expect([response.status, response.body.code]).toEqual([502, 'OAUTH_ERROR'])
    for (const text of [response.text, host.logs.text()]) expect(text).not.toContain(secret)
  })
})

describe('the client secret', () => {
  let provider: FakeProvider
  let time = Date.parse('2026-03-01T12:00:00Z')
  beforeEach(async () => {
    provider = await startFakeProvider({ now: () => new Date(time) })
  })
  afterEach(() => provider.close())

  async function secretsAt(instants: readonly number[]): Promise<string[]> {
    const client = new AppleClient(provider.appleOptions({ teamId: 'FAKETEAM01', privateKey: provider.appleOptions().privateKey }))
    client.useClock(() => new Date(time))
    for (const instant of instants) {
      time = instant
      await client.exchangeCode({ code: provider.issueCode(), redirectUri: 'https://x.example' })
    }
    return provider.requestsTo('token').map(({ form }) => String(form.get('client_secret')))
  }

  test('is an ES256 JWT of the team for this client at Apple', async () => {
    const [secret = ''] = await secretsAt([time])
    const [header, claims] = secret.split('.').map((part) => Buffer.from(part, 'base64url').toString())
    expect(JSON.parse(String(header))).toEqual({ alg: 'ES256', typ: 'JWT', kid: 'FAKEKEY001' })
    const iat = time / 1000
    expect(JSON.parse(String(claims))).toEqual({ iss: 'FAKETEAM01', sub: 'client-1', aud: provider.issuer, iat, exp: iat + 300 })
    const end = secret.lastIndexOf('.')
    const key = { key: createPublicKey(provider.appleOptions().privateKey), dsaEncoding: 'ieee-p1363' as const }
    expect(verify('sha256', Buffer.from(secret.slice(0, end)), key, Buffer.from(secret.slice(end + 1), 'base64url'))).toBe(true)
  })

  test('is new before the last one ends, whenever the clock says so, backwards too', async () => {
    const day = 86_400_000
    const base = Date.parse('2026-03-01T12:00:00Z')
    expect(new Set(await secretsAt([base, base + 299_000, base + 300_000, base + 200 * day, base - day])).size).toBe(5)
  })
})

describe('boot', () => {
  const wrong = {
    'an RSA key': generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
    'a key on another curve': generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey,
    'a public key': createPublicKey(privateKey),
    'a PEM whose line breaks were lost': pem.replaceAll('\n', '\\n'),
    'a PEM of a public key': String(createPublicKey(privateKey).export({ type: 'spki', format: 'pem' })),
    'a PEM with a passphrase': String(privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' })),
    'the name of the file': 'AuthKey_KEY1234567.p8',
    nothing: undefined,
    'an empty text': '',
  }
  test.each(Object.entries(wrong))('%s is refused as privateKey, without its value', (_what, given) => {
    const make = () => new AppleClient({ ...options, privateKey: given as string })
    expect(make).toThrow(ConfigurationError)
    expect(make).toThrow(/^AppleClient: privateKey must be the content of the AuthKey_….p8 file/)
  })

  test.each<[object | null, RegExp]>([
    [{ teamId: '' }, /^AppleClient: teamId must be the ten letters/],
    [{ keyId: undefined }, /^AppleClient: keyId must be the ten letters/],
    [
      { clientSecret: 'made by hand' },
      /^AppleClient: unknown option clientSecret; AppleClient makes its client secret from teamId, keyId and privateKey/,
    ],
    [{ responseMode: 'form_post' }, /^AppleClient: unknown option responseMode/],
    [{ clientID: 'x' }, /^AppleClient: unknown option clientID\.$/],
    [{ scopes: 'email' }, /^AppleClient: scopes must be/],
    [{ endpoints: { userinfoUrl: 'https://x.example' } }, /^AppleClient: endpoints\.userinfoUrl is not an endpoint/],
  ])('the options %j are refused', (change, sentence) => {
    expect(() => new AppleClient({ ...options, ...change })).toThrow(sentence)
  })

  test('a key is taken as PEM and as KeyObject, and printing the client shows none of it', () => {
    for (const key of [pem, privateKey]) {
      const client = new AppleClient({ ...options, privateKey: key })
      expect(inspect(client, { depth: 9, showHidden: true })).not.toMatch(/PRIVATE KEY|KEY1234567/)
    }
  })

  test.each<[string[] | undefined, string[], string | undefined]>([
    [undefined, ['openid', 'name', 'email'], 'form_post'],
    [['email'], ['openid', 'email'], 'form_post'],
    [['name', 'openid'], ['openid', 'name'], 'form_post'],
    [[], ['openid'], undefined],
  ])('scopes %j ask for %j, and for the answer by %s', (given, scopes, responseMode) => {
    const client = new AppleClient({ ...options, ...(given && { scopes: given }) })
    expect([client.scopes, client.responseMode]).toEqual([scopes, responseMode])
  })

  test('its addresses are Apple’s', () => {
    expect(new AppleClient(options)).toMatchObject({
      providerName: 'apple',
      authorizeUrl: 'https://appleid.apple.com/auth/authorize',
      tokenUrl: 'https://appleid.apple.com/auth/token',
      issuer: 'https://appleid.apple.com',
      pkce: true,
    })
  })
})

test.each([
  ['https://appleid.apple.com', true],
  ['https://account.apple.com', true],
  ['https://appleid.apple.com/', false],
  ['https://evil.example', false],
])('the issuer %s is accepted: %s', async (iss, isAccepted) => {
  const provider = await startFakeProvider()
  const { issuer: _issuer, ...endpoints } = provider.appleOptions().endpoints
  provider.on('token', answer(200, { ...appleTokens, id_token: provider.signJwt({ ...provider.idTokenClaims(), ...appleClaims, iss }) }))
  const client = new AppleClient(provider.appleOptions({ endpoints }))
  const login = client.exchangeCode({ code: 'any', redirectUri: 'https://x.example' })
  if (isAccepted) await expect(login).resolves.toMatchObject({ accessToken: appleTokens.access_token })
  else await expect(login).rejects.toBeInstanceOf(OAuthError)
  await provider.close()
})

test('an id_token of a native sheet is taken for the app ids of extraAudiences', async () => {
  const host = await mounted((provider) => new AppleClient(provider.appleOptions({ extraAudiences: ['com.example.app'] })))
  const { idTokenClaims, signJwt } = host.provider
  const idToken = signJwt({ ...idTokenClaims(), ...appleClaims, aud: 'com.example.app' })
  const response = await supertest(host.app).post('/auth/oauth/apple/token').send({ id_token: idToken })
  expect([response.status, typeof response.body.access_token]).toEqual([200, 'string'])
  const other = await supertest(host.app).post('/auth/oauth/apple/token').send({ access_token: 'any' })
  expect([other.status, other.body.code]).toEqual([501, 'OAUTH_AUDIENCE_UNVERIFIABLE'])
})

test('the first block of docs/providers/apple.md runs, and sends people to Apple', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/providers/apple.md'), 'utf8')
  const [, code = ''] = /```ts\n(.*?)```/s.exec(page) ?? []
  const { outputText } = ts.transpileModule(code, { compilerOptions: { module: ts.ModuleKind.CommonJS } })
  const exported = {} as { createAuth(knex: unknown, mailer: Mailer): AuthRouter } // what the block exports
  const env = {
    APPLE_CLIENT_ID: options.clientId,
    APPLE_TEAM_ID: options.teamId,
    APPLE_KEY_ID: options.keyId,
    APPLE_PRIVATE_KEY: pem,
  }
  const settings = { jwtSecret: testSecret, publicUrl: 'https://app.example.com', cookieSecure: true }
  const module = { ...doorward, settingsFromEnv: () => settings }
  new Function('require', 'exports', 'process', outputText)(() => module, exported, { env })

  const { knex } = await mounted()
  const app = express().use('/auth', exported.createAuth(knex, { send: async () => undefined }))
  const { headers } = await supertest(app).get('/auth/oauth/apple/login')
  const location = new URL(String(headers['location']))
  expect(location.origin + location.pathname).toBe('https://appleid.apple.com/auth/authorize')
  expect(Object.fromEntries(location.searchParams)).toMatchObject({
    client_id: 'com.example.web',
    redirect_uri: 'https://app.example.com/auth/oauth/apple/callback',
    response_mode: 'form_post',
  })
})

test('the fake provider posts the name once, as Apple does, and its page is a form', async () => {
  const provider = await startFakeProvider()
  const client = new AppleClient(provider.appleOptions())
  const query = {
    client_id: client.clientId,
    redirect_uri: 'https://x.example/cb',
    scope: 'name email',
    response_mode: 'form_post',
    state: '"s"',
  }
  const url = `${provider.authorizeUrl}?${new URLSearchParams(query)}`
  const users = [0, 1].map(() => provider.authorize(url).callbackForm?.['user'])
  expect(users).toEqual([appleUser, undefined])
  const page = await (await fetch(url)).text()
  expect(page).toContain('<form method="post" action="https://x.example/cb">')
  expect(page).toContain('name="state" value="&#34;s&#34;"')
  await provider.close()
})
