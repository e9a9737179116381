import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { OidcClient, type OidcClientOptions } from '../../src'
import { baseUrl } from '../support/app'
import { hasAuthlib, startAuthlibProvider } from '../support/authlib-provider'
import { databases } from '../support/databases'
import { type Glewlwyd, glewlwydClient, glewlwydPerson, hasGlewlwyd, startGlewlwyd } from '../support/glewlwyd'
import { type HttpResponse, onDatabase } from './redirect-steps'

/** Section 19: logins by two more providers that nobody here wrote, one in C and one in Python. */
const [database] = await databases()
if (!database) throw new Error('no database')
const host = onDatabase(database, { memory: true })
const redirectUri = `${baseUrl}/auth/oauth/corp/callback`

const curves: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' }
const keyOf = (alg: string): KeyObject => {
  if (alg === 'EdDSA') return generateKeyPairSync('ed25519').privateKey
  if (alg.startsWith('ES')) return generateKeyPairSync('ec', { namedCurve: curves[alg] ?? '' }).privateKey
  return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
}

interface Provider {
  visit(location: string): Promise<URL>
}

/** The provider knows no clock but the system's. */
async function signIn(provider: Provider, options: OidcClientOptions, change: (back: URLSearchParams) => void = () => undefined) {
  const app = await host.start({ providers: { corp: new OidcClient(options) }, options: { now: () => new Date() } })
  await app.knex('auth_users').delete() // of the configuration before: here everybody is a new person
  const browser = app.browser()
  const login = await browser.get('/auth/oauth/corp/login')
  const back = (await provider.visit(String(login.headers['location']))).searchParams
  change(back)
  const response: HttpResponse = await browser.get(`/auth/oauth/corp/callback?${back}`)
  const [identity] = await app.knex('auth_identities').select('subject', 'email', 'email_verified')
  return { app, response, identity }
}

describe.skipIf(!hasGlewlwyd)('Glewlwyd (needs the Debian package glewlwyd)', () => {
  let glewlwyd: Glewlwyd
  beforeAll(async () => {
    glewlwyd = await startGlewlwyd({ redirectUri })
  })
  afterAll(() => glewlwyd.close())

  test.each([
    ['RS256', 'rsa', '256', 'client_secret_basic'],
    ['RS512', 'rsa', '512', 'client_secret_post'],
    ['PS256', 'rsa-pss', '256', 'client_secret_basic'],
    ['ES256', 'ecdsa', '256', 'client_secret_post'],
    ['ES512', 'ecdsa', '512', 'client_secret_basic'],
    ['EdDSA', 'eddsa', '256', 'client_secret_post'],
  ] as const)('signs a person in under %s (%s, %s), by %s', async (alg, keyType, bits, clientAuthentication) => {
    const issuer = await glewlwyd.sign({ name: alg.toLowerCase(), keyType, bits, privateKey: keyOf(alg) })
    const client: OidcClientOptions = { issuer, ...glewlwydClient, clientAuthentication, scopes: ['openid'] }

    const { response, identity } = await signIn(glewlwyd, client)

    expect(response.status).toBe(200)
    // It sends no email_verified, so the address counts as told and not as proven.
    expect(identity).toEqual({ subject: expect.any(String), email: glewlwydPerson.email, email_verified: null })
  })

  test('a code that was tampered with, and a wrong secret, sign nobody in, and the log says why', async () => {
    const issuer = await glewlwyd.sign({ name: 'refusing', keyType: 'rsa', bits: '256', privateKey: keyOf('RS256') })
    const client: OidcClientOptions = { issuer, ...glewlwydClient, scopes: ['openid'] }
    const tampered = await signIn(glewlwyd, client, (back) => back.set('code', `${back.get('code')}x`))
    expect(tampered.response.status).toBe(502)
    expect(tampered.identity).toBeUndefined()
    expect(tampered.app.logs.text()).toContain('invalid_code')

    const stranger = await signIn(glewlwyd, { ...client, clientSecret: 'another' })
    expect(stranger.response.status).toBe(502)
    expect(stranger.identity).toBeUndefined()
  })

  test('its key set calls a P-384 key one for ES512: nobody is signed in, and the log names the key set', async () => {
    const issuer = await glewlwyd.sign({ name: 'es384', keyType: 'ecdsa', bits: '384', privateKey: keyOf('ES384') })
    const { app, response, identity } = await signIn(glewlwyd, { issuer, ...glewlwydClient, scopes: ['openid'] })
    expect([response.status, identity]).toEqual([502, undefined])
    expect(app.logs.text()).toContain('the key set has no such key, or not for this algorithm: check jwksUri')
  })
})

describe.skipIf(!hasAuthlib)('Authlib (needs the Debian packages python3-authlib and python3-flask)', () => {
  const clientId = 'doorward'
  const clientSecret = 'a-secret-without-a-sign-that-is-encoded'

  test('it does not decode the Authorization header (RFC 6749, section 2.3.1): a secret with signs needs client_secret_post', async () => {
    const secret = 'a secret: with / and + and %'
    for (const method of ['client_secret_basic', 'client_secret_post'] as const) {
      const signing = { alg: 'ES256', privateKey: keyOf('ES256'), isAddressInUserinfo: true }
      const provider = await startAuthlibProvider({ clientId, clientSecret: secret, redirectUri, method, ...signing })
      try {
        const options = { issuer: provider.issuer, clientId, clientSecret: secret, clientAuthentication: method }
        const { app, response } = await signIn(provider, options)
        expect(response.status).toBe(method === 'client_secret_post' ? 200 : 502)
        expect(app.logs.text().includes('check clientSecret and clientAuthentication')).toBe(method === 'client_secret_basic')
      } finally {
        await provider.close()
      }
    }
  })

  test.each([
    ['RS256', 'client_secret_basic', true],
    ['ES256', 'client_secret_post', true],
    ['RS512', 'client_secret_basic', false],
    ['PS256', 'none', false],
  ] as const)('signs a person in under %s, by %s, address in userinfo: %s', async (alg, method, isAddressInUserinfo) => {
    const setup = { clientId, clientSecret, redirectUri, method, alg, privateKey: keyOf(alg), isAddressInUserinfo }
    const provider = await startAuthlibProvider(setup)
    try {
      const secret = method === 'none' ? {} : { clientSecret }
      const { response, identity } = await signIn(provider, { issuer: provider.issuer, clientId, ...secret, clientAuthentication: method })

      expect(response.status).toBe(200)
      expect(identity).toEqual({ subject: 'ana-7', email: 'ana@example.com', email_verified: 1 })
    } finally {
      await provider.close()
    }
  })
})
