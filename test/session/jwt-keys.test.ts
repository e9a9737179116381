import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { describe, expect, test } from 'vitest'
import {
  ConfigurationError,
  createAuthRouter,
  createGuards,
  createKnexStore,
  type JwtKey,
  type SettingsInput,
  settingsFromEnv,
} from '../../src'
import { deriveKey } from '../../src/core/keys'
import { type Mounted, signIn, testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { sendRaw } from '../support/send-raw'
import { claimsAt, makeKey, privatePem, publicPem, retired, signedWithSecret, type TestKey } from '../support/signing-keys'

const start = appPerTest()
const ec = makeKey('ec-1', 'ES256')
const otherEc = makeKey('ec-2', 'ES256')
const rsa = makeKey('rsa-1', 'RS256')
const pss = makeKey('pss-1', 'PS256')

function refusal(jwtKeys: unknown): string {
  try {
    createGuards({ settings: { jwtKeys: jwtKeys as JwtKey[] } }) // wrong on purpose
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError)
    expect((error as Error).cause).toBeUndefined()
    return (error as Error).message // just checked
  }
  return 'accepted'
}

function partsOf(token: string): [Record<string, unknown>, Record<string, unknown>] {
  const [header, claims] = token
    .split('.')
    .slice(0, 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()))
  return [header, claims]
}

describe('settings.jwtKeys at boot', () => {
  const privateOf = (pair: { privateKey: Parameters<typeof privatePem>[0] }) => privatePem(pair.privateKey)
  const monstrous = () => {
    const n = randomBytes(1_100)
    n[0] = 0xff
    return publicPem(createPublicKey({ key: { kty: 'RSA', n: n.toString('base64url'), e: 'AQAB' }, format: 'jwk' }))
  }
  const needsRsa = /key 1 has alg RS256, which needs an RSA key of 2048 to 8192 bits with exponent 65537: openssl genpkey/
  const needsEc = /key 1 has alg ES256, which needs an EC key on P-256: openssl genpkey/
  const notPrivate = /key 1 has a privateKey that is not an unencrypted private key in PEM; in JSON its line breaks are written \\n/
  const notPublic = /key 2 has a publicKey that is not a public key in PEM/
  const wrong: [string, () => unknown[], RegExp][] = [
    ['RSA of 1024 bits', () => [{ ...rsa, ...onlyPrivate(generateKeyPairSync('rsa', { modulusLength: 1024 })) }], needsRsa],
    [
      'RSA with exponent 3',
      () => [{ ...rsa, ...onlyPrivate(generateKeyPairSync('rsa', { modulusLength: 2048, publicExponent: 3 })) }],
      needsRsa,
    ],
    ['an RSA-PSS key', () => [{ ...rsa, ...onlyPrivate(generateKeyPairSync('rsa-pss', { modulusLength: 2048 })) }], needsRsa],
    ['RSA of 8800 bits', () => [ec, { kid: 'big', alg: 'RS256', publicKey: monstrous() }], /key 2 has alg RS256, which needs an RSA key/],
    ['an EC key for RS256', () => [{ ...rsa, privateKey: ec.privateKey, publicKey: undefined }], needsRsa],
    ['an RSA key for ES256', () => [{ ...ec, privateKey: rsa.privateKey, publicKey: undefined }], needsEc],
    ['P-384', () => [{ ...ec, ...onlyPrivate(generateKeyPairSync('ec', { namedCurve: 'P-384' })) }], needsEc],
    ['secp256k1', () => [{ ...ec, ...onlyPrivate(generateKeyPairSync('ec', { namedCurve: 'secp256k1' })) }], needsEc],
    ['Ed25519', () => [{ ...ec, ...onlyPrivate(generateKeyPairSync('ed25519')) }], needsEc],
    ['no PEM', () => [{ ...ec, privateKey: 'canary'.repeat(20) }], notPrivate],
    ['PEM without its line breaks', () => [{ ...ec, privateKey: ec.privateKey.replaceAll('\n', '\\n') }], notPrivate],
    ['an encrypted private key', () => [{ ...ec, privateKey: encrypted() }], notPrivate],
    ['a public key as privateKey', () => [{ ...ec, privateKey: ec.publicKey }], notPrivate],
    ['a private key as publicKey', () => [rsa, { ...retired(ec), publicKey: ec.privateKey }], notPublic],
    ['a certificate', () => [rsa, { ...retired(ec), publicKey: ec.publicKey.replaceAll('PUBLIC KEY', 'CERTIFICATE') }], notPublic],
    [
      'a publicKey of another pair',
      () => [{ ...ec, publicKey: otherEc.publicKey }],
      /key 1 has a publicKey that does not belong to its privateKey/,
    ],
    ['one key under two names', () => [ec, rsa, { ...retired(ec), kid: 'again' }], /key 3 is key 1 under another kid/],
    ['one key under two algorithms', () => [rsa, { ...retired(rsa), kid: 'again', alg: 'PS256' }], /key 2 is key 1 under another kid/],
    ['two keys of one name', () => [ec, { ...rsa, kid: ec.kid }], /must be a list.*kid unique/],
    ['no key', () => [], /must be a list.*of 1 to 20 keys/],
  ]

  function onlyPrivate(pair: { privateKey: Parameters<typeof privatePem>[0] }) {
    return { privateKey: privateOf(pair), publicKey: undefined }
  }

  function encrypted(): string {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    return String(privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'canary' }))
  }

  test.each(wrong)('%s is refused by its place, in a sentence that says the fix and no value', (_what, keys, sentence) => {
    const message = refusal(keys())

    expect(message).toMatch(/^Setting jwtKeys \(AUTH_JWT_KEYS\)/)
    expect(message).toMatch(sentence)
    expect(message).not.toMatch(/canary|MII|MIG|ec-1|rsa-1/)
  })

  test('the router refuses the same, and still needs its secret', async () => {
    const { knex } = await start()
    const boot = (settings: object) => () =>
      createAuthRouter({ settings: settings as SettingsInput, store: createKnexStore({ knex }), environment: 'test' })
    const base = { oauthRedirectBaseUrl: 'https://app.example.test' }

    expect(boot({ ...base, jwtSecret: testSecret, jwtKeys: [retired(ec)] })).toThrow(/key 1 signs/)
    expect(boot({ ...base, jwtKeys: [ec] })).toThrow(/Setting jwtSecret \(AUTH_JWT_SECRET\) must be/)
    expect(boot({ ...base, jwtSecret: testSecret, jwtKeys: [ec, retired(rsa), pss] })).not.toThrow()
  })

  test('guards sign nothing, and need no private key', () => {
    expect(refusal([retired(ec), retired(rsa)])).toBe('accepted')
  })

  test('AUTH_JWT_KEYS is the same list as JSON', () => {
    const { jwtKeys } = settingsFromEnv({ AUTH_JWT_KEYS: JSON.stringify([ec, retired(rsa)]) })

    expect(() => createGuards({ settings: { jwtKeys } })).not.toThrow()
    expect(refusal('[{"kid":"canary"}]')).toMatch(/^Setting jwtKeys \(AUTH_JWT_KEYS\) must be a list/)
  })

  test('keys of several kinds side by side leave nothing behind that the next private key of the process fails with', () => {
    expect(refusal([ec, retired(rsa), retired(otherEc)])).toBe('accepted')
    expect(() => createPrivateKey(ec.privateKey)).not.toThrow()
  })

  test('keys as openssl writes them in its older forms do too', () => {
    const pair = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const sec1 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'sec1', format: 'pem' })
    const pkcs1 = (['privateKey', 'publicKey'] as const).map((name) => [name, pair[name].export({ type: 'pkcs1', format: 'pem' })])

    expect(
      refusal([
        { kid: 'a', alg: 'ES256', privateKey: sec1 },
        { kid: 'b', alg: 'PS256', ...Object.fromEntries(pkcs1) },
      ]),
    ).toBe('accepted')
  })
})

describe('a router with jwtKeys', () => {
  const withKeys = (jwtKeys: readonly JwtKey[], more: Parameters<typeof start>[0] = {}) => start({ settings: { jwtKeys }, ...more })
  const me = async (mounted: Mounted, token: string) =>
    sendRaw(mounted.app, { method: 'GET', path: '/auth/me', headers: { Authorization: `Bearer ${token}` } })

  test.each([[ec], [rsa], [pss]])('signs under the first: alg, typ and kid in the header, the same claims', async (key: TestKey) => {
    const mounted = await withKeys([key])
    const { body } = await signIn(mounted)
    const [header, claims] = partsOf(body.access_token)

    expect(header).toEqual({ alg: key.alg, typ: 'JWT', kid: key.kid })
    expect(Object.keys(claims).sort()).toEqual(['amr', 'auth_time', 'email', 'exp', 'iat', 'sid', 'sub', 'typ'])
    expect((await me(mounted, body.access_token)).status).toBe(200)
    const refreshed = await mounted.browser().post('/auth/refresh').send({ refresh_token: body.refresh_token })
    expect(partsOf(refreshed.body.access_token)[0]).toEqual(header)
  })

  test('refuses access tokens under the secret, which other kinds of tokens go on using', async () => {
    const mounted = await withKeys([ec])
    const claims = claimsAt(mounted.clock.now())
    const underSecret = signedWithSecret(deriveKey(testSecret, 'access').export(), claims, { alg: 'HS256', typ: 'JWT' })

    const answer = await me(mounted, underSecret)

    expect([answer.status, answer.body['code']]).toEqual([401, 'INVALID_TOKEN'])
    expect((await signIn(mounted)).status).toBe(200) // state, under a key of the secret
  })

  test('iat is the instant of the login and of the refresh as the session has it, whenever the clock is read', async () => {
    let reads = 0
    const base = Date.parse('2026-03-01T12:00:00.000Z')
    const mounted = await withKeys([ec], { options: { now: () => new Date(base + 1000 * reads++) } })
    const login = await signIn(mounted)
    const refreshed = await mounted.browser().post('/auth/refresh').send({ refresh_token: login.body.refresh_token })
    const [session] = await mounted.knex('auth_sessions')

    expect([login, refreshed].map(({ body }) => Number(partsOf(body.access_token)[1]['iat']) * 1000)).toEqual(
      [session.created_at, session.rotated_at].map((instant: string | number) => new Date(instant).getTime()),
    )
  })
})

describe('GET /.well-known/jwks.json', () => {
  const path = '/auth/.well-known/jwks.json'

  test('publishes the public half of every key, in order, for 300 seconds, without a cookie', async () => {
    const mounted = await start({ settings: { jwtKeys: [ec, rsa, retired(pss)], tokenDelivery: 'both' } })
    const answer = await sendRaw(mounted.app, { method: 'GET', path })
    const { keys } = answer.body as unknown as { keys: Record<string, string>[] }

    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toMatch(/^application\/json/)
    expect(answer.headers['cache-control']).toBe('public, max-age=300')
    expect(answer.headers['pragma']).toBeUndefined()
    expect(answer.headers['set-cookie']).toBeUndefined()
    expect(keys.map(({ kid, alg, kty, use }) => ({ kid, alg, kty, use }))).toEqual([
      { kid: 'ec-1', alg: 'ES256', kty: 'EC', use: 'sig' },
      { kid: 'rsa-1', alg: 'RS256', kty: 'RSA', use: 'sig' },
      { kid: 'pss-1', alg: 'PS256', kty: 'RSA', use: 'sig' },
    ])
    expect(keys.map((key) => Object.keys(key).sort().join(' '))).toEqual([
      'alg crv kid kty use x y',
      'alg e kid kty n use',
      'alg e kid kty n use',
    ])
    expect((await sendRaw(mounted.app, { method: 'HEAD', path })).status).toBe(200)
    const posted = await sendRaw(mounted.app, { method: 'POST', path })
    expect([posted.status, posted.headers['allow']]).toEqual([405, 'GET, HEAD'])
  })

  test('is left to the host when tokens are signed with the secret', async () => {
    const mounted = await start({ host: (app) => app.get(path, (_req, res) => void res.json({ from: 'the host' })) })

    expect((await sendRaw(mounted.app, { method: 'GET', path })).body).toEqual({ from: 'the host' })
  })

  test('is all that jose needs to verify our tokens, under each algorithm', async () => {
    for (const jwtKeys of [
      [ec, rsa, pss],
      [rsa, pss, ec],
      [pss, ec, rsa],
    ]) {
      const mounted = await start({ settings: { jwtKeys } })
      const server = mounted.app.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port } = server.address() as AddressInfo // a TCP server's
      const { body } = await signIn(mounted)

      const keySet = createRemoteJWKSet(new URL(`http://127.0.0.1:${port}${path}`))
      const { payload, protectedHeader } = await jwtVerify(body.access_token, keySet, {
        algorithms: ['ES256', 'RS256', 'PS256'],
        currentDate: mounted.clock.now(),
      })

      expect([payload.sub, protectedHeader.alg]).toEqual([body.user_id, jwtKeys[0]?.alg])
      server.close()
      server.closeAllConnections()
    }
  })
})
