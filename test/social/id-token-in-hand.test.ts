import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { createKnexStore, createTokenVerifier, GitHubClient, GoogleClient, OidcClient } from '../../src'
import { amrOf } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { mfaSettings } from '../mfa/people'
import { type Mounted, type MountOptions, signIn } from '../support/app'
import { databases } from '../support/databases'
import { answer, type FakeProvider } from '../support/fake-provider'
import { faultyStore } from '../support/faulty-store'
import { rowCounts } from './accounts-at-hand'
import { bearer, type HttpResponse, newPerson, onDatabase, setCookies } from './redirect-steps'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start, opened } = onDatabase(database, { memory: true })

const kinds = {
  oidc: (provider: FakeProvider) => new OidcClient(provider.oidcOptions({ extraAudiences: ['the-app-on-phones'] })),
  google: (provider: FakeProvider) => new GoogleClient(provider.googleOptions()),
  verifier: (provider: FakeProvider) =>
    new OidcClient(
      provider.oidcOptions({
        tokenVerifier: createTokenVerifier({ issuer: provider.issuer, jwksUri: provider.jwksUri, algorithms: ['RS256'] }),
      }),
    ),
}
const startAll = (options: Omit<MountOptions, 'knex'> = {}) =>
  start({ providers: kinds, options: { throttle: { routes: false } }, ...options })

function inHand(host: Mounted, body: unknown, key = 'oidc'): Promise<HttpResponse> {
  return supertest(host.app).post(`/auth/oauth/${key}/token`).set('Content-Type', 'application/json').send(JSON.stringify(body))
}

type Claims = Record<string, unknown>

/** What the provider signs for a sheet of the system: without a nonce unless told otherwise. */
function idTokenOf({ provider }: Mounted, claims: Claims = {}, header: Claims = {}): string {
  const given = { ...provider.idTokenClaims({ profile: newPerson() }), ...claims }
  return provider.signJwt(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)), { header })
}

const summary = ({ status, body }: HttpResponse) => [status, body.code]
const secondsOf = (host: Mounted) => Math.floor(host.clock.now().getTime() / 1000)
const asked = ({ provider }: Mounted) => provider.requests.splice(0).map(({ endpoint }) => endpoint)

describe('POST /oauth/:provider/token { id_token }', () => {
  test.each(Object.keys(kinds))('%s: signs the person in by the id_token alone, and userinfo is not asked', async (key) => {
    const host = await startAll()
    const person = newPerson()
    const first = await inHand(host, { id_token: idTokenOf(host, person) }, key)
    expect(first.status, first.text).toBe(200)
    expect(first.body).toEqual({
      user_id: expect.any(String),
      access_token: expect.any(String),
      refresh_token: expect.any(String),
      mfa_required: false,
      mfa_token: null,
    })
    expect([asked(host), setCookies(first), amrOf(first.body.access_token)]).toEqual([['jwks'], [], ['ext']])
    const listed = await supertest(host.app).get('/auth/oauth/accounts').set(bearer(first))
    expect(listed.body).toMatchObject([{ provider: key, subject: person.sub, email: person.email, name: person['name'] }])
    const again = await inHand(host, { id_token: idTokenOf(host, { ...person, jti: 'another' }) }, key)
    expect([again.body.user_id, asked(host)]).toEqual([first.body.user_id, []])
  })

  test('it is the person of the callback, and the second factor is asked for', async () => {
    const host = await startAll({ settings: mfaSettings })
    const person = newPerson()
    const { body } = await signIn(host, host.browser(), { key: 'oidc', profile: person })
    const { secret } = await host.auth.service.enrollTotp(body.user_id)
    await host.auth.service.confirmTotp({ userId: body.user_id, amr: ['ext'], code: authenticator(secret, host.clock).code() })
    const challenge = await inHand(host, { id_token: idTokenOf(host, person) })
    expect(challenge.body).toMatchObject({ mfa_required: true, access_token: null, mfa_token: expect.any(String) })
  })

  test('without HTTP: auth.service.logInWithToken and linkWithToken', async () => {
    const host = await startAll()
    const login = await host.auth.service.logInWithToken({ provider: 'oidc', idToken: idTokenOf(host) })
    expect(login.kind).toBe('session')
    const nonce = 'n-1'
    const linked = await host.auth.service.linkWithToken(login.userId, { provider: 'google', idToken: idTokenOf(host, { nonce }), nonce })
    expect(linked).toMatchObject({ provider: 'google', userId: login.userId })
    await expect(host.auth.service.logInWithToken({ provider: 'oidc', idToken: 'x' })).rejects.toMatchObject({ code: 'VALIDATION_ERROR' })
  })
})

describe('what is refused', () => {
  type Row = [string, number, string, (host: Mounted) => string]
  const mismatch = [401, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'] as const
  const rejected = [401, 'OAUTH_TOKEN_REJECTED'] as const
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const rows: Row[] = [
    ['of another application', ...mismatch, (host) => idTokenOf(host, { aud: 'another-app' })],
    ['of nobody', ...mismatch, (host) => idTokenOf(host, { aud: [] })],
    [
      'of several applications that does not say who asked for it',
      ...mismatch,
      (host) => idTokenOf(host, { aud: ['client-1', 'another-app'] }),
    ],
    ['that another application asked for', ...mismatch, (host) => idTokenOf(host, { azp: 'another-app' })],
    ['that nobody sane asked for', ...mismatch, (host) => idTokenOf(host, { azp: ['client-1'] })],
    ['whose azp is ours and whose aud is not', ...mismatch, (host) => idTokenOf(host, { aud: 'another-app', azp: 'client-1' })],
    ['of another issuer', ...rejected, (host) => idTokenOf(host, { iss: 'https://evil.example' })],
    ['without an issuer', ...rejected, (host) => idTokenOf(host, { iss: undefined })],
    ['that has expired', ...rejected, (host) => idTokenOf(host, { exp: secondsOf(host) })],
    ['without an expiry', ...rejected, (host) => idTokenOf(host, { exp: undefined })],
    ['that is older than 10 minutes', ...rejected, (host) => idTokenOf(host, { iat: secondsOf(host) - 601, exp: secondsOf(host) + 3600 })],
    ['without an age', ...rejected, (host) => idTokenOf(host, { iat: undefined })],
    ['with an age that is no number', ...rejected, (host) => idTokenOf(host, { iat: String(secondsOf(host)) })],
    ['of the future', ...rejected, (host) => idTokenOf(host, { iat: secondsOf(host) + 61 })],
    ['without a subject', ...rejected, (host) => idTokenOf(host, { sub: undefined })],
    ['with a nonce that the app did not send along', ...rejected, (host) => idTokenOf(host, { nonce: 'n' })],
    ['without a signature', ...rejected, (host) => `${idTokenOf(host, {}, { alg: 'none' }).split('.').slice(0, 2).join('.')}.AA`],
    [
      'signed with our client secret',
      ...rejected,
      ({ provider }) => provider.signJwt(provider.idTokenClaims(), { header: { alg: 'HS256' }, key: provider.clientSecret }),
    ],
    ['signed by a key nobody published', ...rejected, ({ provider }) => provider.signJwt(provider.idTokenClaims(), { key: other })],
    ['of a key nobody published', ...rejected, (host) => idTokenOf(host, {}, { kid: 'unknown' })],
    ['that is an access token by its header', ...rejected, (host) => idTokenOf(host, {}, { typ: 'at+jwt' })],
    ['that is a logout token by its header', ...rejected, (host) => idTokenOf(host, {}, { typ: 'logout+jwt' })],
    ['that is a logout token by its events', ...rejected, (host) => idTokenOf(host, { events: {} })],
    ['that is an access token by `typ`', ...rejected, (host) => idTokenOf(host, { typ: 'Bearer' })],
    ['that is an access token by `token_use`', ...rejected, (host) => idTokenOf(host, { token_use: 'access' })],
  ]

  test.each(rows)('an id_token %s: %i %s, and no account is looked at', async (_case, status, code, make) => {
    const spy = faultyStore(createKnexStore({ knex: opened().knex }))
    const host = await startAll({ options: { throttle: { routes: false }, store: spy.store } })
    spy.calls.length = 0
    const token = make(host)
    const response = await inHand(host, { id_token: token })
    expect([summary(response), response.body.details, spy.calls]).toEqual([[status, code], {}, []])
    expect(host.logs.text()).not.toContain(token.split('.')[1])
  })

  test('Keycloak’s `typ: ID`, Cognito’s `token_use: id`, an azp of a phone and two audiences with azp are fine; so are 10 minutes', async () => {
    const host = await startAll()
    const fine: Claims[] = [
      { typ: 'ID' },
      { token_use: 'id' },
      { azp: 'the-app-on-phones' },
      { aud: 'the-app-on-phones' },
      { aud: ['client-1', 'another-app'], azp: 'client-1' },
      { iat: secondsOf(host) - 600 },
      { iat: secondsOf(host) + 60 },
    ]
    for (const claims of fine) expect([claims, (await inHand(host, { id_token: idTokenOf(host, claims) })).status]).toEqual([claims, 200])
  })

  test.each<[string, object, string | undefined]>([
    ['both tokens', { access_token: 'a', id_token: 'a.b.c' }, undefined],
    ['neither', {}, undefined],
    ['a nonce with an access token', { access_token: 'a', nonce: 'n' }, undefined],
    ['two parts', { id_token: 'a.b' }, 'id_token'],
    ['an empty part', { id_token: 'a..c' }, 'id_token'],
    ['an encrypted token', { id_token: 'a.b.c.d.e' }, 'id_token'],
    ['a token that is too long', { id_token: `a.${'b'.repeat(8190)}.c` }, 'id_token'],
    ['a list', { id_token: ['a.b.c'] }, 'id_token'],
    ['an empty nonce', { id_token: 'a.b.c', nonce: '' }, 'nonce'],
    ['a nonce with a blank', { id_token: 'a.b.c', nonce: 'a b' }, 'nonce'],
    ['a nonce that is too long', { id_token: 'a.b.c', nonce: 'n'.repeat(513) }, 'nonce'],
    ['a nonce that is a number', { id_token: 'a.b.c', nonce: 7 }, 'nonce'],
  ])('%s: 422 without any call', async (_case, body, path) => {
    const host = await startAll()
    const response = await inHand(host, body)
    expect(summary(response)).toEqual([422, 'VALIDATION_ERROR'])
    if (path !== undefined) expect(response.body.details.errors[0].path).toBe(path)
    expect(asked(host)).toEqual([])
  })

  test('where nothing can check it: 501 without any call', async () => {
    const without =
      (name: 'issuer' | 'jwksUri' | 'clientId', providerName: string = name) =>
      (provider: FakeProvider) => {
        const { [name]: _left, ...options } = provider.oidcOptions({ providerName })
        return new OidcClient({ ...options, ...(name === 'clientId' && { clientId: '' }) } as never)
      }
    const host = await start({
      providers: {
        issuer: without('issuer'),
        keys: without('jwksUri', 'keys'),
        nobody: without('clientId', 'nobody'),
        github: (provider) => new GitHubClient(provider.githubOptions()),
      },
    })
    for (const key of ['issuer', 'keys', 'nobody', 'github']) {
      const response = await inHand(host, { id_token: idTokenOf(host) }, key)
      expect([key, ...summary(response), response.body.details]).toEqual([key, 501, 'OAUTH_AUDIENCE_UNVERIFIABLE', { provider: key }])
    }
    expect(asked(host)).toEqual([])
  })

  test('keys that cannot be read: 502 OAUTH_PROVIDER_UNAVAILABLE, and the token may be tried again', async () => {
    const host = await startAll()
    const id_token = idTokenOf(host)
    host.provider.on('jwks', answer(503, {}))
    expect(summary(await inHand(host, { id_token }))).toEqual([502, 'OAUTH_PROVIDER_UNAVAILABLE'])
    host.provider.on('jwks', null)
    host.clock.advance(1)
    expect((await inHand(host, { id_token })).status).toBe(200)
  })
})

describe('nonce', () => {
  const hashed = (nonce: string) => createHash('sha256').update(nonce).digest('hex')
  test.each<[string, string | undefined, string | undefined, number]>([
    ['the same', 'n-0S6_WzA2Mj', 'n-0S6_WzA2Mj', 200],
    ['the SHA-256 in hex, as Apple’s sheets send it', hashed('n-0S6_WzA2Mj'), 'n-0S6_WzA2Mj', 200],
    ['another', 'n-0S6_WzA2Mj', 'other', 401],
    ['the hash for the nonce', 'n-0S6_WzA2Mj', hashed('n-0S6_WzA2Mj'), 401],
    ['the hash in capitals', hashed('n-0S6_WzA2Mj').toUpperCase(), 'n-0S6_WzA2Mj', 401],
    ['in the token alone', 'n-0S6_WzA2Mj', undefined, 401],
    ['in the body alone', undefined, 'n-0S6_WzA2Mj', 401],
    ['nowhere', undefined, undefined, 200],
  ])('%s', async (_case, inToken, inBody, status) => {
    const host = await startAll()
    const response = await inHand(host, { id_token: idTokenOf(host, { nonce: inToken }), nonce: inBody })
    expect(summary(response)).toEqual([status, status === 200 ? undefined : 'OAUTH_TOKEN_REJECTED'])
  })

  test('that is no text is refused', async () => {
    const host = await startAll()
    for (const nonce of [7, null, ['n'], true]) {
      expect(summary(await inHand(host, { id_token: idTokenOf(host, { nonce }), nonce: 'n' }))).toEqual([401, 'OAUTH_TOKEN_REJECTED'])
    }
  })
})

describe('an id_token is used once', () => {
  test('the second time it is 401 OAUTH_TOKEN_REJECTED, whoever brings it and under whatever key, and nothing changes', async () => {
    const host = await startAll()
    const id_token = idTokenOf(host)
    expect((await inHand(host, { id_token })).status).toBe(200)
    const before = await rowCounts(host.knex)
    for (const key of ['oidc', 'google']) expect(summary(await inHand(host, { id_token }, key))).toEqual([401, 'OAUTH_TOKEN_REJECTED'])
    host.clock.advance(299)
    expect(summary(await inHand(host, { id_token }))).toEqual([401, 'OAUTH_TOKEN_REJECTED'])
    expect(await rowCounts(host.knex)).toEqual(before)
  })

  test('also one that led to a refusal', async () => {
    const host = await startAll()
    const id_token = idTokenOf(host, { email: undefined })
    expect(summary(await inHand(host, { id_token }))).toEqual([422, 'OAUTH_EMAIL_MISSING'])
    expect(summary(await inHand(host, { id_token }))).toEqual([401, 'OAUTH_TOKEN_REJECTED'])
  })

  test('a request with the wrong nonce uses nothing up', async () => {
    const host = await startAll()
    const id_token = idTokenOf(host, { nonce: 'right' })
    expect((await inHand(host, { id_token, nonce: 'wrong' })).status).toBe(401)
    expect((await inHand(host, { id_token, nonce: 'right' })).status).toBe(200)
  })

  test('another spelling of its signature is the same token', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const host = await startAll()
    host.provider.on('jwks', answer(200, { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'ec', use: 'sig', alg: 'ES256' }] }))
    const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
    const signed = [{ alg: 'ES256', kid: 'ec', typ: 'JWT' }, host.provider.idTokenClaims({ profile: newPerson() })].map(encode).join('.')
    const one = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' })
    // Of every ECDSA signature (r, s) there is a second form, (r, n - s).
    const n = BigInt('0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551')
    const s = (n - BigInt(`0x${one.toString('hex', 32)}`)).toString(16).padStart(64, '0')
    const other = Buffer.concat([one.subarray(0, 32), Buffer.from(s, 'hex')])
    expect((await inHand(host, { id_token: `${signed}.${one.toString('base64url')}` })).status).toBe(200)
    expect(summary(await inHand(host, { id_token: `${signed}.${other.toString('base64url')}` }))).toEqual([401, 'OAUTH_TOKEN_REJECTED'])
  })

  test('of twenty copies at once exactly one gets in', async () => {
    const host = await startAll()
    const person = newPerson()
    await inHand(host, { id_token: idTokenOf(host, { ...person, jti: 'before' }) })
    const id_token = idTokenOf(host, person)
    const copies = await Promise.all(Array.from({ length: 20 }, () => inHand(host, { id_token })))
    expect(copies.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 19 }, () => 401)])
  })
})
