import { createPublicKey } from 'node:crypto'
import express, { type Express } from 'express'
import { describe, expect, test } from 'vitest'
import { createGuards, findAuth, getAuth, type HttpClient } from '../../src'
import { testClock } from '../support/clock'
import { logTap } from '../support/log-tap'
import { sendRaw } from '../support/send-raw'
import { base64url, claimsAt, makeKey, publicJwk, retired, signedWith, signedWithSecret, tokenUnder } from '../support/signing-keys'

const clock = testClock()
const ec = makeKey('ec', 'ES256')
const rsa = makeKey('rsa', 'RS256')
const pss = makeKey('pss', 'PS256')
const old = makeKey('old', 'ES256')
const stranger = makeKey('ec', 'ES256') // our kid, another key
const claims = claimsAt(clock.now())
const ecHeader = { alg: 'ES256', typ: 'JWT', kid: 'ec' }

const publish: HttpClient = async () => ({
  status: 200,
  headers: {},
  body: JSON.stringify({ keys: [ec, rsa, pss, old].map(publicJwk) }),
})

const sources = {
  'keys of its own': { settings: { jwtKeys: [ec, rsa, pss, retired(old)] } },
  'published keys': { settings: { jwksUri: 'https://id.example.test/auth/.well-known/jwks.json' }, httpClient: publish },
}

function guarded(source: keyof typeof sources): Express {
  const guards = createGuards({ ...sources[source], now: clock.now, logger: logTap() })
  const app = express()
  app.get('/api', guards.requireAuth(), (req, res) => void res.json(getAuth(req)))
  app.get('/optional', guards.optionalAuth(), (req, res) => void res.json({ sub: findAuth(req)?.sub ?? null }))
  app.get('/mfa', guards.requireMfa(), (_req, res) => void res.json({ reached: true }))
  return app
}

const ask = (app: Express, authorization: string | string[], path = '/api') =>
  sendRaw(app, { method: 'GET', path, headers: { Authorization: authorization } })

/** The same bytes, written with other spare bits in the last character. */
function otherSpareBits(token: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  return token.slice(0, -1) + alphabet[alphabet.indexOf(token.slice(-1)) ^ 1]
}

const good = tokenUnder(ec, claims)
const [goodHeader = '', goodPayload = '', goodSignature = ''] = good.split('.')
const spki = createPublicKey(ec.publicKey).export({ type: 'spki', format: 'der' })

const forged: [string, string][] = [
  // one algorithm per key, chosen by kid
  ['HS256 with the public PEM as secret', signedWithSecret(ec.publicKey, claims, { alg: 'HS256', typ: 'JWT' })],
  ['HS256 with the public PEM as secret, under its kid', signedWithSecret(ec.publicKey, claims, { ...ecHeader, alg: 'HS256' })],
  ['HS256 with the trimmed PEM', signedWithSecret(ec.publicKey.trim(), claims, { ...ecHeader, alg: 'HS256' })],
  ['HS256 with the public DER', signedWithSecret(spki, claims, { ...ecHeader, alg: 'HS256' })],
  ['HS256 with the published JWK', signedWithSecret(JSON.stringify(publicJwk(ec)), claims, { ...ecHeader, alg: 'HS256' })],
  ['HS256 with the RSA PEM', signedWithSecret(rsa.publicKey, claims, { alg: 'HS256', typ: 'JWT', kid: 'rsa' })],
  ['HS256 with an empty secret', signedWithSecret('', claims, { alg: 'HS256', typ: 'JWT' })],
  ['an HMAC under the honest header', signedWithSecret(ec.publicKey, claims, ecHeader)],
  ['alg none', `${base64url({ ...ecHeader, alg: 'none' })}.${base64url(claims)}.`],
  ['alg none, with a signature', `${base64url({ ...ecHeader, alg: 'none' })}.${goodPayload}.${goodSignature}`],
  ['alg none without kid', `${base64url({ alg: 'none', typ: 'JWT' })}.${base64url(claims)}.`],
  ['RS256 under the kid of an ES256 key', signedWith(rsa, claims, { alg: 'RS256', typ: 'JWT', kid: 'ec' })],
  ['RS256 by the RS256 key under an ES256 header', signedWith(rsa, claims, { ...ecHeader, kid: 'rsa' })],
  ['ES256 under the kid of an RS256 key', signedWith(ec, claims, { ...ecHeader, kid: 'rsa' })],
  ['PS256 by an RS256 key', signedWith({ ...rsa, alg: 'PS256' }, claims, { alg: 'PS256', typ: 'JWT', kid: 'rsa' })],
  ['a PS256 signature under an RS256 header', signedWith({ ...rsa, alg: 'PS256' }, claims, { alg: 'RS256', typ: 'JWT', kid: 'rsa' })],
  ['RS256 by a PS256 key', signedWith({ ...pss, alg: 'RS256' }, claims, { alg: 'RS256', typ: 'JWT', kid: 'pss' })],
  ['an RS256 signature under a PS256 header', signedWith({ ...pss, alg: 'RS256' }, claims, { alg: 'PS256', typ: 'JWT', kid: 'pss' })],
  ['PS256 with another salt length', signedWith(pss, claims, { alg: 'PS256', typ: 'JWT', kid: 'pss' }, { saltLength: 20 })],
  ['RS384', signedWith(rsa, claims, { alg: 'RS384', typ: 'JWT', kid: 'rsa' })],
  ['es256 in small letters', signedWith(ec, claims, { ...ecHeader, alg: 'es256' })],
  ['alg as a list', signedWith(ec, claims, { ...ecHeader, alg: ['ES256'] })],
  // the key
  ['another key of the same name', signedWith(stranger, claims, ecHeader)],
  ['the retired key under the name of the first', signedWith(old, claims, ecHeader)],
  ['an unknown kid', signedWith(ec, claims, { ...ecHeader, kid: 'nobody' })],
  ['no kid', signedWith(ec, claims, { alg: 'ES256', typ: 'JWT' })],
  ['an empty kid', signedWith(ec, claims, { ...ecHeader, kid: '' })],
  ['kid as a number', signedWith(ec, claims, { ...ecHeader, kid: 0 })],
  ['kid null', signedWith(ec, claims, { ...ecHeader, kid: null })],
  ['kid __proto__', signedWith(ec, claims, { ...ecHeader, kid: '__proto__' })],
  ['kid constructor', signedWith(ec, claims, { ...ecHeader, kid: 'constructor' })],
  ['kid of a path', signedWith(ec, claims, { ...ecHeader, kid: '../../dev/null' })],
  // what else a header could say
  ['an embedded jwk and its key', signedWith(stranger, claims, { ...ecHeader, jwk: publicJwk(stranger) })],
  ['an embedded jwk instead of kid', signedWith(stranger, claims, { alg: 'ES256', typ: 'JWT', jwk: publicJwk(stranger) })],
  ['jku', signedWith(ec, claims, { ...ecHeader, jku: 'https://evil.example/jwks' })],
  ['x5c', signedWith(ec, claims, { ...ecHeader, x5c: ['MIIB'] })],
  ['x5u', signedWith(ec, claims, { ...ecHeader, x5u: 'https://evil.example/x' })],
  ['crit', signedWith(ec, claims, { ...ecHeader, crit: ['exp'] })],
  ['b64', signedWith(ec, claims, { ...ecHeader, b64: false })],
  ['zip', signedWith(ec, claims, { ...ecHeader, zip: 'DEF' })],
  ['a member called __proto__', signedWith(ec, claims, '{"alg":"ES256","typ":"JWT","kid":"ec","__proto__":{}}')],
  ['no typ', signedWith(ec, claims, { alg: 'ES256', kid: 'ec' })],
  ['typ at+jwt', signedWith(ec, claims, { ...ecHeader, typ: 'at+jwt' })],
  ['typ jwt in small letters', signedWith(ec, claims, { ...ecHeader, typ: 'jwt' })],
  ['a header that is a list', signedWith(ec, claims, ['ES256', 'JWT', 'ec'])],
  ['a header that is null', signedWith(ec, claims, 'null')],
  ['a header that is no JSON', signedWith(ec, claims, '{"alg":"ES256"')],
  // the signature
  ['a signature of another token', `${goodHeader}.${base64url({ ...claims, sub: 'someone-else' })}.${goodSignature}`],
  ['a signature in DER', signedWith(ec, claims, ecHeader, { dsaEncoding: 'der' })],
  ['r and s of zero', `${goodHeader}.${goodPayload}.${Buffer.alloc(64).toString('base64url')}`],
  ['a signature of 63 bytes', `${goodHeader}.${goodPayload}.${Buffer.from(goodSignature, 'base64url').subarray(1).toString('base64url')}`],
  ['a signature twice as long', `${good}${goodSignature}`],
  ['other spare bits in the signature, ES256', otherSpareBits(good)],
  ['other spare bits in the signature, RS256', otherSpareBits(tokenUnder(rsa, claims))],
  ['a character more, ES256', `${good}A`],
  ['a character more, RS256', `${tokenUnder(rsa, claims)}A`],
  ['a character less, ES256', good.slice(0, -1)],
  ['a character less, RS256', tokenUnder(rsa, claims).slice(0, -1)],
  ['padding', `${good}=`],
  ['plain base64', `${tokenUnder(rsa, claims).replaceAll('-', '+').replaceAll('_', '/')}+`],
  ['no signature', `${goodHeader}.${goodPayload}.`],
  ['two parts', `${goodHeader}.${goodPayload}`],
  ['four parts', `${good}.x`],
  ['a blank inside', good.replace('.', '. ')],
  ['a line of two tokens', `${good},${good}`],
  // the claims, under the right signature
  ['no exp', tokenUnder(ec, { ...claims, exp: undefined })],
  ['an exp that never comes', tokenUnder(ec, JSON.stringify(claims).replace(/"exp":\d+/, '"exp":1e999'))],
  ['exp as text', tokenUnder(ec, { ...claims, exp: String(claims.exp) })],
  ['nbf', tokenUnder(ec, { ...claims, nbf: claims.iat + 600 })],
  ['sub an object', tokenUnder(ec, { ...claims, sub: {} })],
  ['sub of 65 characters', tokenUnder(ec, { ...claims, sub: 'x'.repeat(65) })],
  ['amr an object', tokenUnder(ec, { ...claims, amr: { 0: 'otp', length: 1 } })],
  ['the payload null', tokenUnder(ec, 'null')],
  ['the payload a list', tokenUnder(ec, [claims])],
  ['the payload no JSON', tokenUnder(ec, '{"sub":')],
  ['more than 4 KiB', tokenUnder(ec, { ...claims, email: 'x'.repeat(4096) })],
]

describe.each(Object.keys(sources) as (keyof typeof sources)[])('a guard with %s', (source) => {
  test('R-100 R-105 believes every key of the list, whatever the order of the header', async () => {
    const app = guarded(source)

    for (const key of [ec, rsa, pss, old]) expect((await ask(app, `Bearer ${tokenUnder(key, claims)}`)).body).toEqual(claims)
    const turned = signedWith(ec, claims, { kid: 'ec', typ: 'JWT', alg: 'ES256' })
    expect((await ask(app, `Bearer ${turned}`)).body).toEqual(claims)
  })

  test('R-100 R-102 refuses whatever is not exactly ours: 401 INVALID_TOKEN, before and after the honest token was seen', async () => {
    const app = guarded(source)
    const seen = async () => {
      const answers: [string, number, unknown, unknown][] = []
      for (const [what, token] of forged) {
        const { status, body, headers } = await ask(app, `Bearer ${token}`)
        answers.push([what, status, body['code'], headers['www-authenticate']])
      }
      return answers
    }
    const refused = forged.map(([what]) => [what, 401, 'INVALID_TOKEN', 'Bearer error="invalid_token"'])

    expect(await seen()).toEqual(refused)
    expect((await ask(app, `Bearer ${good}`)).status).toBe(200)
    expect(await seen()).toEqual(refused)
    expect((await ask(app, `Bearer ${good}`)).status).toBe(200)
  })

  test('R-100 another typ is 401 UNAUTHORIZED, an old token TOKEN_EXPIRED from its exp on, and R-102 a token was sent', async () => {
    const app = guarded(source)
    const codeOf = async (token: string) => {
      const { status, body, headers } = await ask(app, `Bearer ${token}`)
      expect([status, headers['www-authenticate']]).toEqual([401, 'Bearer error="invalid_token"'])
      return body['code']
    }

    for (const typ of ['mfa', 'refresh', 'ACCESS', ['access'], null, undefined])
      expect(await codeOf(tokenUnder(ec, { ...claims, typ }))).toBe('UNAUTHORIZED')
    expect(await codeOf(tokenUnder(ec, { ...claims, exp: claims.iat }))).toBe('TOKEN_EXPIRED')
    expect((await ask(app, `Bearer ${tokenUnder(ec, { ...claims, exp: claims.iat + 1 })}`)).status).toBe(200)
  })

  test('R-101 R-103 the header has the same grammar, and nothing else is read', async () => {
    const app = guarded(source)

    for (const scheme of ['Bearer ', 'bearer ', 'BEARER    ']) expect((await ask(app, scheme + good)).status).toBe(200)
    for (const header of ['Bearer', `Bearer\t${good}`, `Bearer ${good} ${good}`, 'Bearer %E0%A4%A', `Bearer "${good}"`, 'Bearer é'])
      for (const path of ['/api', '/optional', '/mfa']) {
        const answer = await ask(app, Buffer.from(header).toString('latin1'), path)
        expect([answer.status, answer.body['code']], header.slice(0, 20)).toEqual([401, 'INVALID_TOKEN'])
      }
    for (const pair of [
      [`Bearer ${good}`, `Bearer ${good}`],
      ['Basic eDp5', `Bearer ${good}`],
    ])
      expect((await ask(app, pair, '/optional')).body['code']).toBe('INVALID_TOKEN')
    const elsewhere = await sendRaw(app, { method: 'GET', path: `/api?access_token=${good}`, headers: { Cookie: `access_token=${good}` } })
    expect([elsewhere.body['code'], elsewhere.headers['www-authenticate']]).toEqual(['UNAUTHORIZED', 'Bearer'])
    expect((await ask(app, 'Basic eDp5', '/optional')).body).toEqual({ sub: null })
  })

  test('R-102 a session without a second factor is 403 with a challenge of its own', async () => {
    const app = guarded(source)
    const answer = await ask(app, `Bearer ${good}`, '/mfa')

    expect([answer.status, answer.body['code']]).toEqual([403, 'MFA_REQUIRED'])
    expect(answer.headers['www-authenticate']).toBe('Bearer error="insufficient_user_authentication"')
    expect((await ask(app, `Bearer ${tokenUnder(rsa, { ...claims, amr: ['pwd', 'otp'] })}`, '/mfa')).body).toEqual({ reached: true })
  })
})

describe('exactly one key source', () => {
  const make =
    (settings: object, options: object = {}) =>
    () =>
      createGuards({ settings, ...options, logger: logTap() })
  const jwksUri = 'https://id.example.test/jwks'
  const jwtSecret = 'a test secret of forty characters, or so'

  test('R-104 none, two, or settings nobody knows are refused at construction, by name and without a value', () => {
    const wrong: [object, RegExp][] = [
      [{}, /exactly one key source, and none is given/],
      [{ jwtSecret: '', jwtKeys: null, jwksUri: undefined }, /none is given/],
      [{ jwtSecret, jwksUri }, /jwtSecret and jwksUri are given/],
      [{ jwtSecret, jwtKeys: [ec] }, /jwtSecret and jwtKeys are given/],
      [{ jwtKeys: [ec], jwksUri }, /jwtKeys and jwksUri are given/],
      [{ jwtKeys: [] }, /Setting jwtKeys .* must be a list/],
      [{ jwtSecret: 'short' }, /Setting jwtSecret .* must be at least 32/],
      [{ jwtSecret, jwksUrl: 'canary' }, /"jwksUrl" is not a setting; the nearest known one is jwksUri/],
      [{ jwtSecret, sessionTtlSeconds: 'canary' }, /Setting sessionTtlSeconds/],
      [{ jwtSecret, algorithms: ['ES256'] }, /algorithms needs jwksUri/],
      [{ jwtSecret, rememberedTokens: 100_001 }, /Setting rememberedTokens .* from 0 to 100000/],
      [{ jwtSecret, tokenDelivery: 'canary' }, /Setting tokenDelivery/],
      [{ jwtSecret, accessCookieName: 'csrf_token' }, /must differ/],
      ...['http://id.example.test/jwks', 'ftp://id.example.test', 'https://canary@id.example.test', `${jwksUri}#canary`, 'canary', 7].map(
        (uri): [object, RegExp] => [{ jwksUri: uri }, /settings.jwksUri must be an absolute https URL/],
      ),
      ...[[], ['HS256'], ['none'], ['ES256', 'HS256'], ['es256'], 'ES256', 7, ['ES256', 'ES256']].map((algorithms): [object, RegExp] => [
        { jwksUri, algorithms },
        /algorithms must be a list .* of one or more of ES256, RS256, PS256/,
      ]),
    ]
    for (const [settings, sentence] of wrong) {
      expect(make(settings), JSON.stringify(settings)).toThrow(sentence)
      expect(make(settings), JSON.stringify(settings)).not.toThrow(/canary/)
    }
    expect(make({ jwksUri }, { httpClient: {} })).toThrow(/httpClient must be a function/)
    for (const fine of [{ jwksUri: 'http://127.0.0.1:3000/jwks' }, { jwksUri, algorithms: '["RS256"]' }, { jwtKeys: JSON.stringify([ec]) }])
      expect(
        make({
          ...fine,
          tokenDelivery: 'both',
          accessCookieName: 'a',
          defaultLocale: 'pt-BR',
          rememberedTokens: '0',
          mfaIssuer: 'the router’s',
        }),
      ).not.toThrow()
  })
})
