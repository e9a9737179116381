import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { ConfigurationError, OidcClient } from '../../src'
import type { Mounted } from '../support/app'
import { databases } from '../support/databases'
import { answer, signingKeys } from '../support/fake-provider'
import { begin, callBack, newPerson, onDatabase } from './redirect-steps'

/** Section 25.7, rule 7: the habits of real providers. A refusal names what was wrong, in the log and in doctor. */

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onDatabase(database, { memory: true })

const other = generateKeyPairSync('rsa', { modulusLength: 2048 })
const elliptic = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const edwards = generateKeyPairSync('ed25519')
const secret = 'a-channel-secret-of-32-bytes-and-more'
const jwk = (key: KeyObject, members: object = {}) => ({ ...key.export({ format: 'jwk' }), ...members })
const own = (members: object = {}) => jwk(signingKeys().publicKey, members)

let host: Mounted
beforeEach(async () => {
  host = await start()
})

const publish = (...keys: unknown[]) => host.provider.on('jwks', answer(200, { keys }))
const idToken = (make: (claims: Record<string, unknown>) => Record<string, unknown> | string | null) => {
  host.provider.idToken = make
}
const signedWith = (header: Record<string, unknown>, key?: KeyObject | string) =>
  idToken((claims) => host.provider.signJwt(claims, { header, ...(key !== undefined && { key }) }))
const noKid = { kid: undefined }

const headers = { Host: 'app.example.test' }

async function logIn(profile: Record<string, unknown> = newPerson()) {
  const { query, cookie } = await begin(host, { profile, headers })
  return callBack(host, query, { cookie })
}

/** The last log line of a failed call, and what doctor says about it. */
async function told() {
  const lines = host.logs.entries.filter(({ message }) => message === 'doorward: a provider call failed')
  const { findings } = await host.auth.doctor()
  return {
    lines: lines.map(({ fields }) => (fields as { cause: { message: string } }).cause.message), // our own line has this form
    findings: findings.filter(({ check }) => check === 'seen-in-requests').map(({ what }) => what),
  }
}

async function expectRefusal(reason: RegExp) {
  expect((await logIn()).status).toBe(502)
  const { lines, findings } = await told()
  expect(lines).toEqual([expect.stringMatching(reason)])
  expect(findings).toEqual([expect.stringMatching(reason)])
  expect(findings[0]).toContain('The last failed call of provider corp')
}

describe('a token without kid', () => {
  test.each([
    ['the one key has a kid', () => [own({ kid: 'fake-1' })]],
    ['the one key has no kid', () => [own()]],
    ['the one key has an empty kid', () => [own({ kid: '' })]],
    ['the other key is for encryption', () => [jwk(other.publicKey, { kid: 'e', use: 'enc' }), own()]],
  ])('is accepted if %s', async (_what, keys) => {
    publish(...keys())
    signedWith(noKid)
    expect((await logIn()).status).toBe(200)
  })

  test.each([
    ['two keys with kids', () => [own({ kid: 'a' }), jwk(other.publicKey, { kid: 'b' })]],
    ['two keys without kids', () => [own(), jwk(other.publicKey)]],
    ['a key of another type', () => [own({ kid: 'a' }), jwk(elliptic.publicKey, { kid: 'b' })]],
    ['a key that doorward cannot use', () => [own(), { kty: 'oct', k: 'AAAA' }]],
  ])('is refused if the set has %s, and the log and doctor say so', async (_what, keys) => {
    publish(...keys())
    signedWith(noKid)
    await expectRefusal(/the header names no key \(kid\), and the key set has 2: have the provider name the key/)
  })

  test('of a new key is accepted: the set is read again', async () => {
    publish(own())
    signedWith(noKid)
    expect((await logIn()).status).toBe(200)
    publish(jwk(other.publicKey))
    signedWith(noKid, other.privateKey)
    expect((await logIn()).status).toBe(200)
    expect(host.provider.requestsTo('jwks')).toHaveLength(2)
  })

  test('of a key that nobody published is refused', async () => {
    publish(own())
    signedWith(noKid, other.privateKey)
    await expectRefusal(/the signature is not valid/)
  })

  test('and a token that names a key gets no key without a name', async () => {
    publish(own())
    await expectRefusal(/the key set has no such key/)
  })
})

describe('an id_token that the client secret signs', () => {
  const bySecret = { clientSecret: secret, idTokenAlgorithms: ['HS256'] }
  const mountWith = async (options: object) => {
    host = await start({ providers: { corp: options } })
    const claimsOf = (nonce: string) => ({ ...host.provider.idTokenClaims(), nonce })
    // The fake provider knows another secret, so that this endpoint does not check credentials.
    return async (sign: (claims: Record<string, unknown>) => string) => {
      const { query, cookie, params } = await begin(host, { headers })
      const token = sign(claimsOf(String(params.get('nonce'))))
      host.provider.on('token', answer(200, { token_type: 'Bearer', id_token: token, ...withoutAccess }))
      return (await callBack(host, query, { cookie })).status
    }
  }
  const withoutAccess = { access_token: undefined }
  const hs256 = (key: string) => (claims: Record<string, unknown>) =>
    host.provider.signJwt(claims, { header: { alg: 'HS256', kid: undefined }, key })

  test('is accepted if the client asks for HS256 by name, also without a key set', async () => {
    expect(await (await mountWith(bySecret))(hs256(secret))).toBe(200)
    expect(await (await mountWith({ ...bySecret, jwksUri: undefined }))(hs256(secret))).toBe(200)
    expect(host.provider.requestsTo('jwks')).toEqual([])
  })

  test('is refused with another secret, and the log and doctor name the option', async () => {
    expect(await (await mountWith(bySecret))(hs256(`${secret}x`))).toBe(502)
    expect(await told()).toMatchObject({
      lines: [expect.stringContaining('check clientSecret')],
      findings: [expect.stringContaining('check clientSecret')],
    })
  })

  test('is refused if the MAC was made with the published key, in every form', async () => {
    const forms = [
      signingKeys().publicKey.export({ type: 'spki', format: 'pem' }).toString(),
      signingKeys().publicKey.export({ type: 'pkcs1', format: 'pem' }).toString(),
      JSON.stringify(own()),
      '',
    ]
    for (const options of [{ clientSecret: secret }, bySecret]) {
      const attempt = await mountWith(options)
      for (const form of forms) expect(await attempt(hs256(form))).toBe(502)
    }
  })

  test('is refused if the client does not ask for HS256, and the log and doctor say how to ask', async () => {
    signedWith({ alg: 'HS256' }, host.provider.clientSecret)
    await expectRefusal(/alg is HS256\).*set idTokenAlgorithms: \['HS256'\]/)
  })

  test('is the only one accepted: a token of a public key is refused', async () => {
    expect(await (await mountWith(bySecret))((claims) => host.provider.signJwt(claims))).toBe(502)
    expect((await told()).lines).toEqual([expect.stringContaining('alg is RS256')])
  })

  test.each([
    [{ idTokenAlgorithms: ['HS256', 'RS256'] }, /must not name HS256 beside another algorithm/],
    [{ idTokenAlgorithms: ['HS256'], clientSecret: 'x'.repeat(31) }, /needs a clientSecret of at least 32 bytes/],
    [{ idTokenAlgorithms: ['HS256'], clientSecret: undefined, clientAuthentication: 'none' }, /needs a clientSecret/],
    [{ idTokenAlgorithms: ['HS512'] }, /idTokenAlgorithms must be/],
    [{ idTokenAlgorithms: ['none'] }, /idTokenAlgorithms must be/],
    [{ idTokenAlgorithms: [] }, /idTokenAlgorithms must be/],
    [{ idTokenAlgorithms: 'HS256' }, /idTokenAlgorithms must be/],
  ])('and %j does not start', (options, message) => {
    const make = () => new OidcClient({ ...host.provider.oidcOptions({ clientSecret: secret }), ...(options as object) })
    expect(make).toThrow(ConfigurationError)
    expect(make).toThrow(message)
  })

  test('counts although the document lists other algorithms, and without the option a document of HS256 alone does not start', async () => {
    const { issuer, authorizeUrl, tokenUrl, jwksUri } = host.provider
    const document = { issuer, authorization_endpoint: authorizeUrl, token_endpoint: tokenUrl, jwks_uri: jwksUri }
    const listed = (algorithms: unknown[]) =>
      host.provider.on('discovery', answer(200, { ...document, id_token_signing_alg_values_supported: algorithms }))
    const options = { clientId: 'client-1', clientSecret: secret }
    listed(['ES256'])
    await expect(OidcClient.discover(issuer, { ...options, idTokenAlgorithms: ['HS256'] })).resolves.toBeDefined()
    for (const algorithms of [['HS256'], []]) {
      listed(algorithms)
      await expect(OidcClient.discover(issuer, options)).rejects.toThrow(/lists no id_token algorithm.*idTokenAlgorithms: \['HS256'\]/)
    }
    host = await start({ providers: { corp: () => new OidcClient({ ...options, issuer, providerName: 'corp' }) } })
    await expect.poll(() => host.logs.text()).toContain('lists no id_token algorithm')
    const { findings } = await host.auth.doctor()
    expect(findings).toContainEqual(
      expect.objectContaining({ check: 'provider-discovery', what: expect.stringContaining('lists no id_token algorithm') }),
    )
  })
})

describe('a subject that is a number', () => {
  const withSub = (sub: unknown) => {
    const person = newPerson()
    idToken((claims) => ({ ...claims, sub, email: person.email }))
    host.provider.on('userinfo', answer(200, { sub, email: person.email, email_verified: true }))
  }

  test.each([[7], [0], [Number.MAX_SAFE_INTEGER]])('%d is read as text', async (sub) => {
    withSub(sub)
    expect((await logIn()).status).toBe(200)
    const rows = await host.knex('auth_identities').where({ subject: String(sub) })
    expect(rows).toHaveLength(1)
  })

  test('is the same person as its text', async () => {
    withSub(4711)
    const first = await logIn()
    withSub('4711')
    const second = await logIn()
    const subjectOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).sub
    expect(subjectOf(second.body.access_token)).toBe(subjectOf(first.body.access_token))
  })

  test('is refused if JSON cannot carry it exactly, because two people would become one', async () => {
    withSub(2 ** 53)
    await expectRefusal(/sub is a number that JavaScript cannot hold exactly/)
  })
})

describe('a token response', () => {
  const changed = (members: Record<string, unknown>) => {
    const issue = () => ({ access_token: 'token-of-the-provider', token_type: 'Bearer', ...members })
    host.provider.on(
      'token',
      (_request, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(issue())),
    )
  }

  test('with an id_token alone is a login by its profile', async () => {
    const person = newPerson()
    const { query, cookie, params } = await begin(host)
    const claims = { ...host.provider.idTokenClaims(), ...person, nonce: params.get('nonce') }
    changed({ access_token: undefined, id_token: host.provider.signJwt(claims) })
    const response = await callBack(host, query, { cookie })
    expect(response.status).toBe(200)
    expect(await host.knex('auth_users').where({ email: person.email })).toHaveLength(1)
    expect(host.provider.requestsTo('userinfo')).toEqual([])
  })

  test.each([
    [{ access_token: undefined }, /token response refused: access_token is missing/],
    [{ access_token: 7 }, /access_token has characters that no header can have/],
    [{ token_type: 'DPoP' }, /token_type is DPoP, which is not supported/],
    [{ token_type: 'mac' }, /token_type is not Bearer/],
    [{ token_type: undefined }, /token_type is missing/],
    [{ id_token: 7 }, /id_token is not a string/],
  ])('with %j is refused, and the log and doctor name the field', async (members, reason) => {
    changed(members)
    await expectRefusal(reason)
  })
})

test('an id_token of a listed algorithm by another name of it, Ed25519, is accepted (RFC 9864)', async () => {
  publish(jwk(edwards.publicKey, { kid: 'ed', alg: 'Ed25519' }))
  const sign25519 = (alg: string) =>
    idToken((claims) => {
      const signed = [{ alg, kid: 'ed' }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
      return `${signed}.${sign(null, Buffer.from(signed), edwards.privateKey).toString('base64url')}`
    })
  for (const alg of ['EdDSA', 'Ed25519']) {
    sign25519(alg)
    expect([alg, (await logIn()).status]).toEqual([alg, 200])
  }
})

test('doctor says nothing about providers before a call failed, and repeats the last reason only', async () => {
  expect((await told()).findings).toEqual([])
  signedWith({ alg: 'none' })
  await logIn()
  signedWith({ kid: 'strange' })
  await logIn()
  expect((await told()).findings).toEqual([expect.stringContaining('no such key')])
})

test('a public client without PKCE does not start, also where discovery finds that it has no secret', async () => {
  const { issuer, clientId, authorizeUrl, tokenUrl } = host.provider
  const options = { clientId, authorizeUrl, tokenUrl, pkce: false }
  expect(() => new OidcClient({ ...options, clientAuthentication: 'none' })).toThrow(/clientAuthentication: 'none' needs pkce/)
  await expect(OidcClient.discover(issuer, { clientId, clientSecret: '', pkce: false })).rejects.toThrow(/needs pkce/)
  await expect(OidcClient.discover(issuer, { clientId, clientSecret: 'secret', pkce: false })).resolves.toBeDefined()
})
