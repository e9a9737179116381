import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import express, { type RequestHandler } from 'express'
import { auth as jwtBearer } from 'express-oauth2-jwt-bearer'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import supertest from 'supertest'
import { afterEach, describe, expect, test } from 'vitest'
import { createAuthRouter, createAuthTables, createGuards, createKnexStore, getAuth, type SettingsInput } from '../../src'
import { loginAs } from '../../src/testing'
import { addUser } from '../social/accounts-at-hand'
import { testSecret } from '../support/app'
import { databases } from '../support/databases'
import { logTap } from '../support/log-tap'
import { claimsAt, makeKey, signedWith } from '../support/signing-keys'

const key = makeKey('one', 'ES256')
const audience = 'https://api.example.test'
const otherIssuer = 'https://other.example.test'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** A router behind a real address, which is its issuer. */
async function startIssuer(settings: Partial<SettingsInput> = {}) {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { knex, close } = await sqlite.open({ memory: true })
  const app = express()
  const server: Server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}` // a TCP server's address is never a string
  closing.push(close, () => server.close())
  const issuer = `${origin}/auth`
  await createAuthTables(knex)
  const router = (more: Partial<SettingsInput> = {}) =>
    createAuthRouter({
      settings: {
        jwtSecret: testSecret,
        publicUrl: origin,
        jwtKeys: [key],
        accessTokenIssuer: issuer,
        accessTokenAudience: audience,
        ...settings,
        ...more,
      },
      store: createKnexStore({ knex }),
      environment: 'test',
      logger: logTap(),
    })
  const auth = router()
  app.use(auth.wellKnown)
  app.use('/auth', auth)
  app.get('/own', auth.guards.requireAuth(), (req, res) => void res.json(getAuth(req)))
  const { id } = await addUser(knex, { email: 'ana@example.test' })
  const { accessToken } = await loginAs(auth, { id })
  return { auth, app, origin, issuer, knex, id, accessToken, router }
}

function partsOf(token: string): [Record<string, unknown>, Record<string, unknown>] {
  const [header, claims] = token
    .split('.')
    .slice(0, 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()))
  return [header, claims]
}

async function askGuard(guard: RequestHandler, token: string): Promise<unknown> {
  const app = express().get('/', guard, (_req, res) => void res.json({}))
  app.use(((error, _req, res, _next) => void res.status(error.status ?? 500).json({ code: error.code })) as express.ErrorRequestHandler)
  const { status, body } = await supertest(app).get('/').set('Authorization', `Bearer ${token}`)
  return body.code ?? status
}

describe('15.4 the JWT profile of RFC 9068', () => {
  test('the token names its issuer, its audience, its client and itself, beside the claims it always has', async () => {
    const { accessToken, issuer, id } = await startIssuer()
    const [header, claims] = partsOf(accessToken)
    expect(header).toEqual({ alg: 'ES256', typ: 'at+jwt', kid: 'one' })
    expect(claims).toMatchObject({ iss: issuer, aud: audience, client_id: audience, sub: id, typ: 'access', email: 'ana@example.test' })
    expect(String(claims['jti'])).toMatch(/^[\w-]{22}$/)
    expect(Object.keys(claims).sort()).toEqual(
      ['amr', 'aud', 'auth_time', 'client_id', 'email', 'exp', 'iat', 'iss', 'jti', 'sid', 'sub', 'typ'].sort(),
    )
  })

  test('our guard takes it, and getAuth shows the same', async () => {
    const { app, accessToken, issuer } = await startIssuer({
      accessTokenAudience: ['https://a.example.test', audience],
      accessTokenClientId: 'shop',
    })
    const { body } = await supertest(app).get('/own').set('Authorization', `Bearer ${accessToken}`).expect(200)
    expect(body).toMatchObject({ iss: issuer, aud: ['https://a.example.test', audience], client_id: 'shop' })
  })

  test('another issuer, no common audience, another form of header and a missing claim are 401 INVALID_TOKEN', async () => {
    const { auth, issuer } = await startIssuer()
    const good = { iss: issuer, aud: audience, client_id: 'shop', jti: 'x' }
    const codeOf = (claims: object, typ = 'at+jwt') =>
      askGuard(auth.guards.requireAuth(), signedWith(key, claimsAt(new Date(), claims), { alg: 'ES256', typ, kid: 'one' }))

    expect(await codeOf(good)).toBe(200)
    expect(await codeOf({ ...good, aud: ['https://b.example.test', audience] })).toBe(200)
    for (const [claims, typ] of [
      [{ ...good, iss: `${issuer}/` }],
      [{ ...good, iss: [issuer] }],
      [{ ...good, iss: undefined }],
      [{ ...good, aud: 'https://b.example.test' }],
      [{ ...good, aud: [] }],
      [{ ...good, aud: [audience, 7] }],
      [{ ...good, aud: undefined }],
      [{ ...good, jti: undefined }],
      [{ ...good, client_id: undefined }],
      [good, 'JWT'],
      [good, 'application/at+jwt'],
      [good, 'AT+JWT'],
    ] as [object, string?][]) {
      expect([claims, typ, await codeOf(claims, typ)]).toEqual([claims, typ, 'INVALID_TOKEN'])
    }
  })

  test('a token from before the switch is refused, and accepted until it expires with acceptLegacyAccessTokens', async () => {
    const { router, id } = await startIssuer()
    const before = await loginAs(router({ accessTokenIssuer: null, accessTokenAudience: null }), { id })
    const ask = (settings: Partial<SettingsInput>) => askGuard(router(settings).guards.requireAuth(), before.accessToken)
    expect(await ask({})).toBe('INVALID_TOKEN')
    expect(await ask({ acceptLegacyAccessTokens: true })).toBe(200)
  })

  test('a token of another issuer with the same key is no legacy token', async () => {
    const { router } = await startIssuer()
    const auth = router({ acceptLegacyAccessTokens: true })
    const codeOf = (claims: object) =>
      askGuard(auth.guards.requireAuth(), signedWith(key, claimsAt(new Date(), claims), { alg: 'ES256', typ: 'JWT', kid: 'one' }))

    expect(await codeOf({})).toBe(200)
    for (const claims of [{ iss: 'https://other.example.test' }, { aud: 'billing' }, { client_id: 'shop' }, { jti: 'x' }]) {
      expect([claims, await codeOf(claims)]).toEqual([claims, 'INVALID_TOKEN'])
    }
  })

  test('a router without the profile takes no token that has it', async () => {
    const { router, accessToken } = await startIssuer()
    const plain = router({ accessTokenIssuer: null, accessTokenAudience: null })
    expect(await askGuard(plain.guards.requireAuth(), accessToken)).toBe('INVALID_TOKEN')
  })

  test('under the shared secret it works the same, and nothing is published', async () => {
    const { router, id } = await startIssuer()
    const auth = router({ jwtKeys: null })
    const { accessToken } = await loginAs(auth, { id })
    expect(partsOf(accessToken)[0]).toEqual({ alg: 'HS256', typ: 'at+jwt' })
    expect(await askGuard(auth.guards.requireAuth(), accessToken)).toBe(200)
    const app = express().use(auth.wellKnown).use('/auth', auth)
    await supertest(app).get('/auth/.well-known/openid-configuration').expect(404)
    await supertest(app).get('/.well-known/oauth-authorization-server/auth').expect(404)
  })

  test('a refresh makes a token of the profile too, with a name of its own', async () => {
    const { app, auth, id } = await startIssuer()
    const first = await loginAs(auth, { id })
    const { body } = await supertest(app).post('/auth/refresh').send({ refresh_token: first.refreshToken }).expect(200)
    const [one, two] = [first.accessToken, body.access_token].map((token) => partsOf(token)[1])
    expect(two?.['iss']).toBe(one?.['iss'])
    expect(two?.['jti']).not.toBe(one?.['jti'])
  })
})

describe('15.4 metadata, for verifiers that know the issuer alone', () => {
  test('at the prefix and at the root of the site, where RFC 8414 and OpenID look', async () => {
    const { app, origin, issuer } = await startIssuer()
    const expected = {
      issuer,
      jwks_uri: `${origin}/auth/.well-known/jwks.json`,
      response_types_supported: [],
      grant_types_supported: [],
    }
    for (const path of [
      '/auth/.well-known/oauth-authorization-server',
      '/auth/.well-known/openid-configuration',
      '/.well-known/oauth-authorization-server/auth',
    ]) {
      const { body, headers } = await supertest(app).get(path).expect(200)
      expect([path, body]).toEqual([path, expected])
      expect(headers['cache-control']).toBe('public, max-age=300')
    }
  })

  test('an issuer without a path has both addresses at the root', async () => {
    const { router } = await startIssuer()
    const app = express().use(router({ accessTokenIssuer: otherIssuer }).wellKnown)
    for (const name of ['oauth-authorization-server', 'openid-configuration']) {
      expect((await supertest(app).get(`/.well-known/${name}`).expect(200)).body.issuer).toBe(otherIssuer)
    }
  })

  test('createGuards finds the keys by issuer and audience alone, with one look however many ask', async () => {
    const { accessToken, issuer } = await startIssuer()
    let looks = 0
    const guards = createGuards({
      settings: { accessTokenIssuer: issuer, accessTokenAudience: [audience] },
      logger: logTap(),
      httpClient: async (url) => {
        if (!url.includes('jwks')) looks++
        const response = await fetch(url)
        return { status: response.status, headers: {}, body: await response.text() }
      },
    })
    const answers = await Promise.all(Array.from({ length: 5 }, () => askGuard(guards.requireAuth(), accessToken)))
    expect(answers).toEqual(Array(5).fill(200))
    expect(looks).toBe(1)
    const other = createGuards({ settings: { accessTokenIssuer: issuer, accessTokenAudience: 'https://b.example.test' }, logger: logTap() })
    expect(await askGuard(other.requireAuth(), accessToken)).toBe('INVALID_TOKEN')
  })

  test('metadata of another issuer is believed by nobody, and a failure is asked again after 10 seconds at the earliest', async () => {
    const { accessToken, issuer } = await startIssuer()
    let looks = 0
    const guards = createGuards({
      settings: { accessTokenIssuer: issuer, accessTokenAudience: audience },
      logger: logTap(),
      httpClient: async () => {
        looks++
        const body = JSON.stringify({ issuer: otherIssuer, jwks_uri: 'https://evil.example.test/keys' })
        return { status: 200, headers: {}, body }
      },
    })
    expect(await askGuard(guards.requireAuth(), accessToken)).toBe('SERVICE_UNAVAILABLE')
    expect(looks).toBe(3)
    expect(await askGuard(guards.requireAuth(), accessToken)).toBe('SERVICE_UNAVAILABLE')
    expect(looks).toBe(3)
  })

  test.each([
    ['without a key source', {}, /exactly one key source/],
    ['an issuer without an audience', { accessTokenIssuer: otherIssuer }, /accessTokenIssuer .*needs accessTokenAudience/],
    ['an audience without an issuer', { jwtSecret: testSecret, accessTokenAudience: 'a' }, /accessTokenAudience .*needs accessTokenIssuer/],
  ])('guards are refused at boot: %s', (_what, settings, says) => {
    expect(() => createGuards({ settings })).toThrow(says)
  })
})

describe('15.4 verifiers that nobody here wrote take the token, given the issuer alone', async () => {
  test('jose', async () => {
    const { accessToken, issuer, id } = await startIssuer()
    const metadata = (await (await fetch(`${issuer}/.well-known/openid-configuration`)).json()) as { issuer: string; jwks_uri: string }
    const options = { issuer: metadata.issuer, audience, typ: 'at+jwt' }
    const { payload } = await jwtVerify(accessToken, createRemoteJWKSet(new URL(metadata.jwks_uri)), options)
    expect(payload.sub).toBe(id)
  })

  test('express-oauth2-jwt-bearer, in its strict mode of RFC 9068', async () => {
    const { accessToken, issuer } = await startIssuer()
    const guard = jwtBearer({ issuerBaseURL: issuer, audience, strict: true, tokenSigningAlg: 'ES256' })
    expect(await askGuard(guard, accessToken)).toBe(200)
    expect(
      await askGuard(jwtBearer({ issuerBaseURL: issuer, audience: 'https://b.example.test', tokenSigningAlg: 'ES256' }), accessToken),
    ).toBe('invalid_token')
  })

  const python = ['/usr/bin/python3', '/usr/local/bin/python3'].find((path) => existsSync(path)) ?? 'python3'
  const script = `
import json, sys, urllib.request, jwt
issuer, audience, token = sys.argv[1:]
metadata = json.load(urllib.request.urlopen(issuer + '/.well-known/openid-configuration'))
key = jwt.PyJWKClient(metadata['jwks_uri']).get_signing_key_from_jwt(token)
print(jwt.decode(token, key.key, algorithms=['ES256'], audience=audience, issuer=metadata['issuer'])['sub'])
`
  const run = promisify(execFile)
  const hasPyJwt = await run(python, ['-c', 'import jwt, cryptography']).then(
    () => true,
    () => false,
  )

  test.skipIf(!hasPyJwt)('PyJWT (needs the Debian package python3-jwt)', async () => {
    const { accessToken, issuer, id } = await startIssuer()
    const { stdout } = await run(python, ['-c', script, issuer, audience, accessToken])
    expect(stdout.trim()).toBe(id)
  })
})
