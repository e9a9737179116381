import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { getAuth } from '../../src'
import { deriveKey, type KeyPurpose } from '../../src/core/keys'
import { type Mounted, signIn, testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { databases } from '../support/databases'
import { sendRaw } from '../support/send-raw'

const start = appPerTest()
const accessKey = deriveKey(testSecret, 'access')
const header = { alg: 'HS256', typ: 'JWT' }
const base64 = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

/** RFC 7515 by hand: signs what no library would. Strings go in as they are. */
function signed(claims: unknown, given: unknown = header, key: Parameters<typeof createHmac>[1] = accessKey, hash = 'sha256'): string {
  const text = `${base64(given)}.${base64(claims)}`
  return `${text}.${createHmac(hash, key).update(text).digest('base64url')}`
}

async function claimsOf({ clock }: Mounted, changes: object = {}) {
  const iat = clock.now().getTime() / 1000
  return {
    amr: ['ext'],
    email: 'ana@example.test',
    exp: iat + 900,
    iat,
    sub: 'c0ffee00-0000-4000-8000-000000000000',
    typ: 'access',
    ...changes,
  }
}

/** A host with one guarded route; answers what the route or the guard said. */
async function startGuarded() {
  const mounted = await start({
    host: (app, auth) => app.get('/api', auth.guards.requireAuth(), (_req, res) => void res.json({ reached: true })),
  })
  const ask = async (token: string) => sendRaw(mounted.app, { method: 'GET', path: '/api', headers: { Authorization: `Bearer ${token}` } })
  return { mounted, ask, claims: (changes: object = {}) => claimsOf(mounted, changes) }
}

type Forge = (claims: Awaited<ReturnType<typeof claimsOf>>) => string
const without = (claims: object, name: string) => Object.fromEntries(Object.entries(claims).filter(([key]) => key !== name))
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })

function rs256(claims: object): string {
  const text = `${base64({ ...header, alg: 'RS256' })}.${base64(claims)}`
  return `${text}.${sign('sha256', Buffer.from(text), rsa.privateKey).toString('base64url')}`
}

test('R-100 a token under our key, our header and with every claim passes', async () => {
  const { ask, claims } = await startGuarded()

  expect((await ask(signed(await claims()))).body).toEqual({ reached: true })
})

describe('R-100 a token that is not exactly ours is 401 INVALID_TOKEN', () => {
  const forged: [string, Forge][] = [
    ['alg none, unsigned', (claims) => `${base64({ ...header, alg: 'none' })}.${base64(claims)}.`],
    ['alg None', (claims) => `${base64({ ...header, alg: 'None' })}.${base64(claims)}.`],
    ['alg none, with a signature', (claims) => signed(claims, { ...header, alg: 'none' })],
    ['alg HS512 under the right key', (claims) => signed(claims, { ...header, alg: 'HS512' }, accessKey, 'sha512')],
    ['alg HS384 under the right key', (claims) => signed(claims, { ...header, alg: 'HS384' }, accessKey, 'sha384')],
    ['alg RS256', rs256],
    ['alg hs256 in small letters', (claims) => signed(claims, { ...header, alg: 'hs256' })],
    ['crit', (claims) => signed(claims, { ...header, crit: ['exp'], exp: 1 })],
    ['b64 false', (claims) => signed(claims, { ...header, b64: false })],
    ['jku', (claims) => signed(claims, { ...header, jku: 'https://evil.example/jwks' })],
    ['kid', (claims) => signed(claims, { ...header, kid: '../../dev/null' })],
    ['a header without typ', (claims) => signed(claims, { alg: 'HS256' })],
    ['a header of typ at+jwt', (claims) => signed(claims, { ...header, typ: 'at+jwt' })],
    ['a header with the names in another order', (claims) => signed(claims, { typ: 'JWT', alg: 'HS256' })],
    ['a header that is null', (claims) => signed(claims, 'null')],
    ['a header that is no JSON', (claims) => signed(claims, '{"alg":"HS256"')],
    ['no exp', (claims) => signed(without(claims, 'exp'))],
    ['no iat', (claims) => signed(without(claims, 'iat'))],
    ['no sub', (claims) => signed(without(claims, 'sub'))],
    ['no email', (claims) => signed(without(claims, 'email'))],
    ['no amr', (claims) => signed(without(claims, 'amr'))],
    ['exp as text', (claims) => signed({ ...claims, exp: String(claims.exp) })],
    ['exp null', (claims) => signed({ ...claims, exp: null })],
    ['nbf as text', (claims) => signed({ ...claims, nbf: 'x' })],
    ['the payload null', () => signed('null')],
    ['the payload an array', () => signed('[]')],
    ['the payload a text', () => signed('"x"')],
    ['the payload a number', () => signed('7')],
    ['the payload no JSON', () => signed('{"sub":')],
    ['an empty payload', () => signed('')],
    ['sub an object', (claims) => signed({ ...claims, sub: {} })],
    ['sub an array', (claims) => signed({ ...claims, sub: [claims.sub] })],
    ['sub a number', (claims) => signed({ ...claims, sub: 42 })],
    ['sub empty', (claims) => signed({ ...claims, sub: '' })],
    ['sub of 65 characters', (claims) => signed({ ...claims, sub: 'x'.repeat(65) })],
    ['email an object', (claims) => signed({ ...claims, email: {} })],
    ['amr a text', (claims) => signed({ ...claims, amr: 'ext' })],
    ['amr with an unknown method', (claims) => signed({ ...claims, amr: ['ext', 'admin'] })],
    ['amr with an object', (claims) => signed({ ...claims, amr: [{}] })],
    ['more than 4 KiB', (claims) => signed({ ...claims, email: 'x'.repeat(4096) })],
    ['the secret itself as the key', (claims) => signed(claims, header, testSecret)],
    ['an empty key', (claims) => signed(claims, header, '')],
    ['a changed payload', (claims) => signed(claims).replace(/\.[^.]+\./, `.${base64({ ...claims, sub: 'someone-else' })}.`)],
    ['a cut signature', (claims) => signed(claims).slice(0, -2)],
    ['an empty signature', (claims) => signed(claims).replace(/[^.]+$/, '')],
    ['two parts', (claims) => signed(claims).split('.').slice(0, 2).join('.')],
    ['four parts', (claims) => `${signed(claims)}.x`],
    ['one part', () => 'x'],
    ['dots only', () => '..'],
  ]

  test.each(forged)('R-100 %s', async (_what, forge) => {
    const { mounted, ask, claims } = await startGuarded()

    const answer = await ask(forge(await claims()))

    expect([answer.status, answer.body['code']]).toEqual([401, 'INVALID_TOKEN'])
    expect(answer.headers['www-authenticate']).toBe('Bearer error="invalid_token"')
    expect(mounted.logs.entries.filter((entry) => entry.level === 'error')).toEqual([])
  })

  test('R-100 a token under the key of any other purpose', async () => {
    const { ask, claims } = await startGuarded()
    const others: KeyPurpose[] = ['mfa', 'refresh', 'refresh-successor', 'state', 'pkce', 'nonce']

    for (const purpose of others) {
      const answer = await ask(signed(await claims(), header, deriveKey(testSecret, purpose)))
      expect([answer.status, answer.body['code']], purpose).toEqual([401, 'INVALID_TOKEN'])
    }
  })

  test('R-100 a refresh token and the state cookie are no access tokens', async () => {
    const { mounted, ask } = await startGuarded()
    const login = await mounted.browser().get('/auth/oauth/corp/login')
    const state = /oauth_state=([^;]+)/.exec(String(login.headers['set-cookie']))?.[1] ?? ''
    const { refresh_token } = (await signIn(mounted)).body as { refresh_token: string }

    for (const token of [refresh_token, decodeURIComponent(state), mounted.provider.issueAccessToken()])
      expect([(await ask(token)).body['code']]).toEqual(['INVALID_TOKEN'])
  })
})

test('R-100 another typ, or none, is 401 UNAUTHORIZED where the signature can be checked', async () => {
  const { ask, claims } = await startGuarded()
  const complete = await claims()

  for (const changed of [
    { ...complete, typ: 'mfa' },
    { ...complete, typ: 'refresh' },
    { ...complete, typ: 'ACCESS' },
    { ...complete, typ: ['access'] },
    without(complete, 'typ'),
  ]) {
    const answer = await ask(signed(changed))
    expect([answer.status, answer.body['code']], JSON.stringify(changed)).toEqual([401, 'UNAUTHORIZED'])
    expect(answer.headers['www-authenticate']).toBe('Bearer error="invalid_token"')
  }
})

test('R-100 R-105 a token is 401 TOKEN_EXPIRED from its exp on: the leeway is 0', async () => {
  const { mounted, ask, claims } = await startGuarded()
  const token = signed(await claims())

  mounted.clock.advance(899)
  expect((await ask(token)).status).toBe(200)
  mounted.clock.advance(1)
  const answer = await ask(token)

  expect([answer.status, answer.body['code']]).toEqual([401, 'TOKEN_EXPIRED'])
  expect(answer.headers['www-authenticate']).toBe('Bearer error="invalid_token"')
})

test('a claim called __proto__ goes nowhere', async () => {
  const mounted = await start({
    host: (app, auth) => app.get('/api', auth.guards.requireAuth(), (req, res) => void res.json({ admin: 'is_admin' in getAuth(req) })),
  })
  const claims = await claimsOf(mounted)
  const payload = JSON.stringify(claims).replace('{', '{"__proto__":{"is_admin":true},')

  const answer = await sendRaw(mounted.app, { method: 'GET', path: '/api', headers: { Authorization: `Bearer ${signed(payload)}` } })

  expect(answer.body).toEqual({ admin: false })
})

describe.each(await databases())('on $name', (database) => {
  const startOn = appPerTest(database)

  test('R-100 a malformed sub under our signature is a 401 from requireUser, never a 500', async () => {
    const mounted = await startOn()
    for (const sub of [
      'x',
      '0',
      '-1',
      'not-a-uuid',
      '\u0000',
      "' or 1=1 --",
      '\ud800',
      'C0FFEE00-0000-4000-8000-00000000000G',
      '1e3',
      'é'.repeat(64),
    ]) {
      const token = signed(await claimsOf(mounted, { sub }))
      for (const path of ['/auth/me', '/auth/oauth/accounts']) {
        const answer = await sendRaw(mounted.app, { method: 'GET', path, headers: { Authorization: `Bearer ${token}` } })
        if (path === '/auth/me') expect([answer.status, answer.body['code']], JSON.stringify(sub)).toEqual([401, 'UNAUTHORIZED'])
        else expect(answer.status, `${JSON.stringify(sub)} ${answer.text}`).toBeLessThan(500)
      }
    }
  })
})
