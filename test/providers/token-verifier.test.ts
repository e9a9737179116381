import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ConfigurationError, OAuthProviderUnavailableError, OAuthTokenRejectedError } from '../../src/core/errors'
import { readVerificationKey } from '../../src/providers/signed-token'
import { createTokenVerifier, type TokenVerifierOptions } from '../../src/providers/token-verifier'
import { answer, type FakeProvider, signJwt, startFakeProvider } from '../support/fake-provider'

let provider: FakeProvider
let time: number
const now = () => new Date(time)

beforeEach(async () => {
  time = Date.parse('2026-03-01T12:00:00Z')
  provider = await startFakeProvider({ now })
})
afterEach(() => provider.close())

function verifierFor(options: Partial<TokenVerifierOptions> = {}) {
  return createTokenVerifier({ issuer: provider.issuer, jwksUri: provider.jwksUri, algorithms: ['RS256'], now, ...options })
}

const goodToken = () => provider.signJwt(provider.idTokenClaims())
const fetches = () => provider.requestsTo('jwks').length
const rsaKey = (modulusLength: number, publicExponent = 65_537) => generateKeyPairSync('rsa', { modulusLength, publicExponent })
const jwk = (key: KeyObject, members: object = {}) => ({ ...key.export({ format: 'jwk' }), kid: 'k', ...members })

function publish(...keys: unknown[]): void {
  provider.on('jwks', answer(200, { keys }))
}

describe('options', () => {
  test.each([
    ['issuer', { issuer: '' }],
    ['issuer', { issuer: undefined }],
    ['jwksUri', { jwksUri: '' }],
    ['jwksUri', { jwksUri: 'http://idp.example/jwks' }],
    ['typ', { typ: 'JWT' }],
    ['algorithms', { algorithms: [] }],
    ['algorithms', { algorithms: undefined }],
    ['algorithms', { algorithms: 'RS256' }],
    ['algorithms', { algorithms: ['none', 'HS256'] }],
    ['algorithms', { algorithms: ['RS256', 'ES256K'] }],
    ['requiredClaims', { requiredClaims: 'scope' }],
    ['lifespanSeconds', { lifespanSeconds: 0 }],
    ['minRefreshIntervalSeconds', { minRefreshIntervalSeconds: Number.NaN }],
    ['staleIfErrorSeconds', { staleIfErrorSeconds: -1 }],
    ['staleIfErrorSeconds', { staleIfErrorSeconds: 86_401 }],
    ['audience', { audience: 'client-1' }],
  ])('%s: a wrong value is refused at construction (%o)', (name, wrong) => {
    const build = () => verifierFor(wrong as Partial<TokenVerifierOptions>) // deliberately not what the type says
    expect(build).toThrow(ConfigurationError)
    expect(build).toThrow(new RegExp(name))
  })
})

describe('a token', () => {
  const claims = () => provider.idTokenClaims()

  test('that is right is answered with its claims', async () => {
    await expect(verifierFor().verify(goodToken())).resolves.toMatchObject({ sub: 'subject-1', iss: provider.issuer })
  })

  const rejected: [string, () => unknown][] = [
    ['not a JWT', () => 'opaque-token'],
    ['a JWT of two parts', () => goodToken().split('.').slice(0, 2).join('.')],
    ['not a string', () => 7],
    ['of unreadable header', () => `!!!.${goodToken().split('.').slice(1).join('.')}`],
    ['of alg none', () => provider.signJwt(claims(), { header: { alg: 'none' } })],
    ['of HS256', () => provider.signJwt(claims(), { header: { alg: 'HS256' }, key: 'secret' })],
    ['of an algorithm outside the list', () => provider.signJwt(claims(), { header: { alg: 'RS512' } })],
    ['with a critical extension', () => provider.signJwt(claims(), { header: { crit: ['x'], x: 1 } })],
    ['with an unencoded payload (b64)', () => provider.signJwt(claims(), { header: { b64: false } })],
    ['with a kid the key set does not have', () => provider.signJwt(claims(), { header: { kid: 'other' } })],
    ['with a bad signature', () => goodToken().replace(/.{6}$/, 'AAAAAA')],
    ['with a key of its own in the header', () => signedBy(rsaKey(2048))],
    ['of another issuer', () => provider.signJwt({ ...claims(), iss: `${provider.issuer}/` })],
    ['of a list of issuers', () => provider.signJwt({ ...claims(), iss: [provider.issuer] })],
    ['that expires this very second', () => provider.signJwt({ ...claims(), exp: time / 1000 })],
    ['without exp', () => provider.signJwt({ ...claims(), exp: undefined })],
    ['without iss', () => provider.signJwt({ ...claims(), iss: undefined })],
    ['without sub', () => provider.signJwt({ ...claims(), sub: undefined })],
    ['of an empty sub', () => provider.signJwt({ ...claims(), sub: '' })],
    ['not valid before long', () => provider.signJwt({ ...claims(), nbf: time / 1000 + 61 })],
    ['of null', () => provider.signJwt(null)],
    ['of a string', () => provider.signJwt('text')],
  ]
  const signedBy = ({ privateKey, publicKey }: { privateKey: KeyObject; publicKey: KeyObject }) =>
    provider.signJwt(claims(), { key: privateKey, header: { jwk: jwk(publicKey), jku: provider.jwksUri } })

  test.each(rejected)('R-056: %s is rejected', async (_what, token) => {
    const work = verifierFor().verify(token() as string) // one of them deliberately is not
    await expect(work).rejects.toBeInstanceOf(OAuthTokenRejectedError)
  })

  test('R-056: what can be refused by its header alone costs no fetch', async () => {
    const publicKey = rsaKey(2048).publicKey.export({ type: 'spki', format: 'pem' }).toString()
    const algs = ['none', 'None', 'NONE', 'HS256', 'HS384', 'hs256', 'rs256', 'RS512', 'ES256', 'EdDSA', '', null, 7, ['RS256']]
    const headers = [...algs.map((alg) => ({ alg })), { crit: ['exp'] }, { crit: [] }, { b64: true }]
    const [head = '', body = '', signature = ''] = goodToken().split('.')
    const tokens = [
      ...headers.map((header) => signJwt(claims(), { alg: 'RS256', kid: 'fake-1', ...header }, publicKey)),
      '',
      '..',
      `${head}.${body}`,
      `${head}.${body}.${signature}.x.y`,
      ` ${goodToken()}`,
      `${head}=.${body}.${signature}`,
      'x'.repeat(20_000),
    ]
    const verifier = verifierFor({ algorithms: ['RS256', 'none', 'HS256'] })
    for (const token of tokens) await expect(verifier.verify(token), token.slice(0, 60)).rejects.toBeInstanceOf(OAuthTokenRejectedError)
    expect(provider.requests).toEqual([])
  })

  test('R-056: key locations in a header are never visited, and never believed', async () => {
    const elsewhere = await startFakeProvider()
    const header = { jku: elsewhere.jwksUri, x5u: elsewhere.jwksUri, x5c: ['AAAA'], jwk: jwk(rsaKey(2048).publicKey) }
    await expect(verifierFor().verify(provider.signJwt(claims(), { header }))).resolves.toBeDefined()
    expect([elsewhere.requests, fetches()]).toEqual([[], 1])
    await elsewhere.close()
  })

  test.each([
    { exp: String(Date.parse('2027-01-01') / 1000) },
    { exp: null },
    { exp: {} },
    { sub: 7.5 },
    { sub: ['subject-1'] },
    { sub: null },
    { iss: null },
    { nbf: '0' },
    { nbf: null },
    { iat: Date.parse('2026-03-01T12:01:01Z') / 1000 },
    { iat: 'now' },
  ])('R-056: with %j is rejected: exp, iss and sub are required and typed, nbf and iat sane', async (wrong) => {
    await expect(verifierFor().verify(provider.signJwt({ ...claims(), ...wrong }))).rejects.toBeInstanceOf(OAuthTokenRejectedError)
  })

  describe('R-058: an id_token is no access token', () => {
    const signed = (members: object, header: Record<string, unknown> = {}) => provider.signJwt({ ...claims(), ...members }, { header })

    test('refused by what it calls itself, or by what only an id_token carries', async () => {
      const verifier = verifierFor()
      const tokens = [
        signed({ typ: 'ID' }),
        signed({ typ: 'ID' }, { typ: 'at+jwt' }),
        signed({ typ: 'Refresh' }),
        signed({ typ: 'Offline' }),
        signed({ token_use: 'id' }),
        signed({}, { typ: 'ID' }),
        signed({}, { typ: 'logout+jwt' }),
        signed({}, { typ: 'dpop+jwt' }),
        signed({ nonce: 'n' }),
        signed({ at_hash: 'h' }),
        signed({ c_hash: 'h' }),
        signed({ s_hash: 'h' }),
        signed({ nonce: null }),
        // Whatever it calls itself: an older Keycloak repeats the nonce of the login in access tokens.
        signed({ typ: 'Bearer', nonce: 'n' }),
        signed({ token_use: 'access_token', nonce: 'n' }),
      ]
      for (const [index, token] of tokens.entries())
        await expect(verifier.verify(token), String(index)).rejects.toBeInstanceOf(OAuthTokenRejectedError)
    })

    test('an access token is taken in every form providers give it', async () => {
      const verifier = verifierFor()
      const tokens = [
        signed({}, { typ: 'at+jwt' }),
        signed({}, { typ: 'application/at+jwt' }),
        signed({}, { typ: 'AT+JWT' }),
        signed({}, { typ: 'JWT' }),
        signed({}, { typ: undefined }),
        signed({ typ: 'Bearer' }),
        signed({ token_use: 'access' }),
        signed({ token_use: 'access_token' }),
        signed({ nonce: 'n' }, { typ: 'at+jwt' }),
        signed({ typ: { toString: 1 } }),
      ]
      for (const [index, token] of tokens.entries()) await expect(verifier.verify(token), String(index)).resolves.toBeDefined()
    })
  })

  test('details 19.12: with typ at+jwt the header has to say it, without case and with or without application/', async () => {
    const verifier = verifierFor({ typ: 'at+jwt' })
    for (const typ of ['at+jwt', 'AT+JWT', 'application/at+jwt', 'Application/AT+JWT'])
      await expect(verifier.verify(provider.signJwt(claims(), { header: { typ } })), typ).resolves.toBeDefined()
    for (const typ of ['JWT', undefined, 'jwt', 'at+jwt ', 'x/at+jwt', 7])
      await expect(verifier.verify(provider.signJwt(claims(), { header: { typ } })), String(typ)).rejects.toBeInstanceOf(
        OAuthTokenRejectedError,
      )
  })

  test.each(['none', 'HS256'])('of alg %s is refused before any key lookup, even if the list names it', async (alg) => {
    const token = provider.signJwt(claims(), { header: { alg }, key: 'secret' })
    await expect(verifierFor({ algorithms: ['RS256', alg] }).verify(token)).rejects.toBeInstanceOf(OAuthTokenRejectedError)
    expect(fetches()).toBe(0)
  })

  test('must have the required claims', async () => {
    const verifier = verifierFor({ requiredClaims: ['scope'] })
    await expect(verifier.verify(goodToken())).rejects.toBeInstanceOf(OAuthTokenRejectedError)
    await expect(verifier.verify(provider.signJwt({ ...claims(), scope: 'read' }))).resolves.toMatchObject({ scope: 'read' })
    // An inherited member is not a claim.
    const inherited = verifierFor({ requiredClaims: ['toString'] })
    await expect(inherited.verify(goodToken())).rejects.toBeInstanceOf(OAuthTokenRejectedError)
  })

  test('may be issued by a clock that runs up to a minute ahead', async () => {
    await expect(verifierFor().verify(provider.signJwt({ ...claims(), iat: time / 1000 + 59 }))).resolves.toBeDefined()
  })

  test.each(['ES256', 'ES384', 'ES512', 'PS256', 'RS512'])('signed with %s is verified', async (alg) => {
    const namedCurve = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' }[alg]
    const { publicKey, privateKey } = namedCurve ? generateKeyPairSync('ec', { namedCurve }) : rsaKey(2048)
    publish(jwk(publicKey))
    const token = provider.signJwt(claims(), { key: privateKey, header: { alg, kid: 'k' } })
    await expect(verifierFor({ algorithms: [alg] }).verify(token)).resolves.toMatchObject({ sub: 'subject-1' })
  })
})

describe('a key', () => {
  const strong = rsaKey(2048)
  const other = rsaKey(2048)
  const verifyWith = (privateKey: KeyObject, alg = 'RS256') =>
    verifierFor({ algorithms: [alg] }).verify(provider.signJwt(provider.idTokenClaims(), { key: privateKey, header: { alg, kid: 'k' } }))

  test('for signatures is used, by use, key_ops, both or neither', async () => {
    for (const members of [{}, { use: 'sig' }, { key_ops: ['verify'] }, { alg: 'RS256' }]) {
      publish(jwk(strong.publicKey, members))
      await expect(verifyWith(strong.privateKey)).resolves.toBeDefined()
    }
  })

  test.each([
    ['for other operations', { key_ops: ['encrypt'] }],
    ['of another algorithm', { alg: 'RS512' }],
    ['of an encryption algorithm', { alg: 'RSA-OAEP' }],
    ['that is symmetric', { kty: 'oct', k: 'c2VjcmV0' }],
    ['that is private', strong.privateKey.export({ format: 'jwk' })],
  ])('R-056: %s is dropped: the token is rejected', async (_what, members) => {
    publish(jwk(strong.publicKey, members))
    await expect(verifyWith(strong.privateKey)).rejects.toBeInstanceOf(OAuthTokenRejectedError)
  })

  test('for encryption is as if it were not in the set: its kid is absent beside a signing key, and alone the set has no signing key (25.9.7)', async () => {
    const encryption = jwk(strong.publicKey, { use: 'enc' })
    publish(encryption, jwk(other.publicKey, { kid: 'signing' }))
    await expect(verifyWith(strong.privateKey)).rejects.toBeInstanceOf(OAuthTokenRejectedError)
    publish(encryption)
    await expect(verifyWith(strong.privateKey)).rejects.toBeInstanceOf(OAuthProviderUnavailableError)
    publish(encryption, jwk(strong.publicKey, { use: 'sig' }))
    await expect(verifyWith(strong.privateKey)).resolves.toBeDefined()
  })

  test.each([
    ['of 1024 bits', rsaKey(1024)],
    ['with exponent three', rsaKey(2048, 3)],
  ])('F21: %s is dropped, though the signature is right', async (_what, weak) => {
    publish(jwk(weak.publicKey))
    await expect(verifyWith(weak.privateKey)).rejects.toBeInstanceOf(OAuthTokenRejectedError)
  })

  test.each([
    ['whose exponent is one', { e: 'AQ' }],
    ['whose exponent is enormous', { e: 'AQAAAAAAAAAB' }],
    ['whose modulus is one bit', { n: 'AQ' }],
    ['whose modulus has 16 kbit', { n: 'w'.repeat(2731) }],
    ['whose modulus is an object', { n: {} }],
    ['of another type', { kty: 'OKP' }],
  ])('F21: %s is not a verification key', (_what, members) => {
    expect(readVerificationKey(jwk(strong.publicKey))).not.toBeNull()
    expect(readVerificationKey(jwk(strong.publicKey, members))).toBeNull()
  })

  test('of another curve is dropped', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'secp256k1' })
    publish(jwk(publicKey))
    await expect(verifyWith(privateKey, 'ES256')).rejects.toBeInstanceOf(OAuthTokenRejectedError)
  })

  test('that shares its name with another for the same algorithm is not guessed', async () => {
    publish(jwk(strong.publicKey), jwk(other.publicKey))
    await expect(verifyWith(strong.privateKey)).rejects.toBeInstanceOf(OAuthTokenRejectedError)
    publish(jwk(strong.publicKey, { alg: 'RS256' }), jwk(other.publicKey, { alg: 'PS256' }))
    await expect(verifyWith(strong.privateKey)).resolves.toBeDefined()
  })
})

describe('the key set', () => {
  const unknownKid = (kid = 'unknown') => provider.signJwt(provider.idTokenClaims(), { header: { kid } })

  const published = rsaKey(2048)
  function goodKey() {
    return jwk(published.publicKey, { kid: 'good' })
  }
  const tokenOfGoodKey = () => provider.signJwt(provider.idTokenClaims(), { key: published.privateKey, header: { kid: 'good' } })

  test.each([
    ['unreadable', answer(200, 'no JSON')],
    ['not found', answer(404, { error: 'not_found' })],
    ['moved', answer(302, { keys: [goodKey()] }, { location: '/elsewhere' })],
    ['of no keys', answer(200, { keys: [] })],
    ['without a list', answer(200, { keys: { 'fake-1': {} } })],
    ['of encryption keys only', answer(200, { keys: [jwk(rsaKey(2048).publicKey, { use: 'enc', kid: 'e' })] })],
    ['of more than 100 keys', answer(200, { keys: [goodKey(), ...Array.from({ length: 100 }, () => ({}))] })],
    ['of more than 1 MiB', answer(200, { keys: [goodKey()], padding: 'x'.repeat(1024 * 1024) })],
  ])('F21: %s makes the provider unavailable', async (_what, handler) => {
    provider.on('jwks', handler)
    await expect(verifierFor().verify(tokenOfGoodKey())).rejects.toBeInstanceOf(OAuthProviderUnavailableError)
  })

  test('is read when it has 100 keys', async () => {
    publish(goodKey(), ...Array.from({ length: 99 }, () => ({})))
    await expect(verifierFor().verify(tokenOfGoodKey())).resolves.toBeDefined()
  })

  test('may be larger than other answers, up to 1 MiB', async () => {
    publish({ ...goodKey(), padding: 'x'.repeat(900_000) })
    await expect(verifierFor().verify(tokenOfGoodKey())).resolves.toBeDefined()
  })

  test('R-057: is used for 300 seconds, then read again', async () => {
    const verifier = verifierFor()
    await verifier.verify(goodToken())
    time += 239_000
    await verifier.verify(goodToken())
    expect(fetches()).toBe(1)
    time += 61_000
    await verifier.verify(goodToken())
    expect(fetches()).toBe(2)
  })

  test('is read at most once per 60 seconds for unknown kids', async () => {
    const verifier = verifierFor()
    await verifier.verify(goodToken())
    for (const expected of [2, 3]) {
      for (let index = 0; index < 50; index += 1) await verifier.verify(unknownKid(`k${index}`)).catch(() => undefined)
      time += 59_000
      await verifier.verify(unknownKid()).catch(() => undefined)
      expect(fetches()).toBe(expected)
      time += 1_000
    }
    await expect(verifier.verify(goodToken())).resolves.toBeDefined()
  })

  test('a key that was rotated in just after a read is found at its first token', async () => {
    const verifier = verifierFor()
    await verifier.verify(goodToken())
    const rotated = rsaKey(2048)
    publish(jwk(rotated.publicKey, { kid: 'new' }))
    const token = provider.signJwt(provider.idTokenClaims(), { key: rotated.privateKey, header: { kid: 'new' } })
    await expect(verifier.verify(token)).resolves.toBeDefined()
  })

  test('R-057, X06: 5,000 tokens of random kids cost one fetch a minute, and valid tokens are served among them', async () => {
    const verifier = verifierFor()
    const [, body = ''] = goodToken().split('.')
    const junk = () => {
      const header = Buffer.from(JSON.stringify({ alg: 'RS256', kid: randomUUID() })).toString('base64url')
      return verifier.verify(`${header}.${body}.AAAA`)
    }
    // A cold cache first, then one that is read and past its cooldown.
    for (const expected of [2, 3]) {
      const valid = goodToken()
      const burst = Array.from({ length: 5_000 }, (_, index) => (index % 500 === 0 ? verifier.verify(valid) : junk()))
      const outcomes = await Promise.allSettled(burst)
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(10)
      for (const outcome of outcomes) if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(OAuthTokenRejectedError)
      // Not only in one breath: for the rest of the minute, too.
      for (let index = 0; index < 50; index += 1) {
        time += 1_000
        await expect(junk()).rejects.toBeInstanceOf(OAuthTokenRejectedError)
        await expect(verifier.verify(valid)).resolves.toBeDefined()
      }
      expect(fetches()).toBe(expected)
      time += 60_000
    }
  })

  test('a valid token is served at once while a refresh for an unknown kid hangs', async () => {
    const verifier = verifierFor()
    await verifier.verify(goodToken())
    time += 60_000
    const arrived = new Promise<ServerResponse>((resolve) => provider.on('jwks', (_request, response) => resolve(response)))
    const waiting = verifier.verify(unknownKid()).catch((error: unknown) => error)
    const response = await arrived
    await expect(verifier.verify(goodToken())).resolves.toBeDefined()
    response.destroy()
    expect(await waiting).toBeInstanceOf(OAuthProviderUnavailableError)
  })

  test('a key that was rotated out is good until the lifespan of the set ends, and no longer', async () => {
    const verifier = verifierFor()
    await verifier.verify(goodToken())
    publish(goodKey())
    time += 299_000
    await expect(verifier.verify(goodToken())).resolves.toBeDefined()
    time += 1_000
    await expect(verifier.verify(goodToken())).rejects.toBeInstanceOf(OAuthTokenRejectedError)
    await expect(verifier.verify(tokenOfGoodKey())).resolves.toBeDefined()
  })

  test('C21: callers at the same moment share one fetch, and its failure', async () => {
    const verifier = verifierFor({ staleIfErrorSeconds: 0 })
    await Promise.all(Array.from({ length: 40 }, () => verifier.verify(goodToken())))
    expect(fetches()).toBe(1)
    time += 60_000
    await Promise.allSettled(Array.from({ length: 40 }, (_, index) => verifier.verify(unknownKid(`k${index}`))))
    expect(fetches()).toBe(2)
    provider.on('jwks', answer(503, {}))
    time += 300_000
    const failed = await Promise.allSettled(Array.from({ length: 40 }, () => verifier.verify(goodToken())))
    for (const outcome of failed) expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'OAUTH_PROVIDER_UNAVAILABLE' } })
    expect(fetches()).toBe(3)
  })

  test('R-057: a failure is remembered for a second, and forgotten after it', async () => {
    provider.on('jwks', answer(503, { error: 'down' }))
    const verifier = verifierFor()
    for (let index = 0; index < 5; index += 1) {
      await expect(verifier.verify(goodToken())).rejects.toBeInstanceOf(OAuthProviderUnavailableError)
    }
    expect(fetches()).toBe(1)
    provider.on('jwks', null)
    time += 1_000
    await expect(verifier.verify(goodToken())).resolves.toBeDefined()
  })

  test('without staleIfErrorSeconds the keys that were read stay good until their lifespan ends, though a refresh failed', async () => {
    const verifier = verifierFor({ staleIfErrorSeconds: 0 })
    await verifier.verify(goodToken())
    provider.on('jwks', answer(503, { error: 'down' }))
    time += 61_000
    await expect(verifier.verify(unknownKid())).rejects.toBeInstanceOf(OAuthProviderUnavailableError)
    await expect(verifier.verify(unknownKid())).rejects.toBeInstanceOf(OAuthProviderUnavailableError)
    expect(fetches()).toBe(2)
    await expect(verifier.verify(goodToken())).resolves.toBeDefined()
    time += 240_000
    await expect(verifier.verify(goodToken())).rejects.toBeInstanceOf(OAuthProviderUnavailableError)
  })

  test('a clock set back does not stretch the lifespan', async () => {
    const verifier = verifierFor()
    await verifier.verify(goodToken())
    time -= 3_600_000
    await verifier.verify(goodToken())
    expect(fetches()).toBe(2)
  })
})
