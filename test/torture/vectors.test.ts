import { createPublicKey, createSecretKey } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { isSignedBy, readHeader, readVerificationKey, SIGNATURE_ALGORITHMS, verifySignature } from '../../src/providers/signed-token'
import { base32, findStep } from '../../src/second-factor/accept-code'
import { readSigned } from '../../src/sessions/access-keys'
import { readTokenHeader } from '../../src/sessions/access-token'
import { codeChallengeOf } from '../../src/social/app-redirect/exchange-code'

/** The published vectors of the standards we stand on, against our own functions; RFC 6238's are in `test/mfa/totp.test.ts`. */

test('RFC 7636 appendix B: the S256 challenge of the verifier', () => {
  expect(codeChallengeOf('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk')).toBe('E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM')
})

test('RFC 4226 appendix D: the codes of the counters 0 to 9', () => {
  const codes = ['755224', '287082', '359152', '969429', '338314', '254676', '287922', '162583', '399871', '520489']
  const secret = base32(Buffer.from('12345678901234567890'))

  codes.forEach((code, counter) => {
    expect(findStep(secret, code, { now: new Date(counter * 30_000), window: 0 })).toBe(counter)
    expect(findStep(secret, code, { now: new Date((counter + 1) * 30_000), window: 0 })).toBeNull()
  })
})

test('RFC 4648 section 10: base32 of a whole group', () => {
  expect(base32(Buffer.from('fooba'))).toBe('MZXW6YTB')
})

// RFC 7515 appendix A: one payload, which is the example of RFC 7519 section 3.1 too.
const payload = 'eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ'
const claims = { iss: 'joe', exp: 1_300_819_380, 'http://example.com/is_root': true }

const hs256 = {
  token: `eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.${payload}.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk`,
  k: 'AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow',
}

const asymmetric = {
  RS256: {
    token: `eyJhbGciOiJSUzI1NiJ9.${payload}.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw`,
    jwk: {
      kty: 'RSA',
      n: 'ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ',
      e: 'AQAB',
    },
  },
  ES256: {
    token: `eyJhbGciOiJFUzI1NiJ9.${payload}.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q`,
    jwk: {
      kty: 'EC',
      crv: 'P-256',
      x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
      y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
    },
  },
} as const

const algorithms = ['RS256', 'ES256'] as const

/** The same token with one bit of its payload or its signature turned. */
const tampered = (token: string) =>
  [1, 2].map((part) =>
    token
      .split('.')
      .map((text, index) => (index === part ? turned(text) : text))
      .join('.'),
  )
const turned = (text: string) => `${text.slice(0, 20)}${text[20] === 'A' ? 'B' : 'A'}${text.slice(21)}`

test('RFC 8037 appendix A.5: the Ed25519 signature is valid, and a changed one is not', () => {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }
  const signed = 'eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc'
  const signature = 'hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg'
  const key = readVerificationKey({ ...jwk, kid: 'a' })

  expect(key?.algorithms).toEqual(['EdDSA'])
  if (!key) throw new Error('no key')
  expect(isSignedBy(`${signed}.${signature}`, key.key, 'EdDSA')).toBe(true)
  expect(isSignedBy(`${signed}.${signature.replace('h', 'i')}`, key.key, 'EdDSA')).toBe(false)
})

describe('RFC 7515 appendix A and RFC 7519 section 3.1', () => {
  test('A.1: HS256, what signs our access tokens, takes the vector and nothing beside it', () => {
    const key = { algorithm: 'HS256', keys: [createSecretKey(Buffer.from(hs256.k, 'base64url'))] } as const

    expect(readSigned(key, hs256.token)).toEqual(claims)
    for (const token of tampered(hs256.token)) expect(readSigned(key, token)).toBeNull()
    // A header that is not byte for byte ours is refused before any key is asked.
    expect(() => readTokenHeader(hs256.token)).toThrow(expect.objectContaining({ code: 'INVALID_TOKEN' }))
  })

  test.each(algorithms)('A.2, A.3: %s as our guards and as a provider’s token: the vector, and nothing beside it', (algorithm) => {
    const { token, jwk } = asymmetric[algorithm]
    const key = { algorithm, key: createPublicKey({ key: { ...jwk }, format: 'jwk' }) }
    const read = readVerificationKey(jwk)

    expect(readSigned(key, token)).toEqual(claims)
    expect(read?.algorithms).toContain(algorithm)
    expect(readHeader(token, SIGNATURE_ALGORITHMS)).toEqual({ alg: algorithm, kid: null, typ: null })
    expect(verifySignature(token, key.key, algorithm)).toEqual(claims)
    for (const other of tampered(token)) {
      expect(readSigned(key, other)).toBeNull()
      expect(() => verifySignature(other, key.key, algorithm)).toThrow(expect.objectContaining({ code: 'OAUTH_TOKEN_REJECTED' }))
    }
  })

  test.each(algorithms)('the key of %s is for no algorithm of another kind of key', (algorithm) => {
    const isOfKind = (name: string) => (algorithm === 'ES256' ? name === 'ES256' : /^[RP]S/.test(name))

    expect(readVerificationKey(asymmetric[algorithm].jwk)?.algorithms.filter((name) => !isOfKind(name))).toEqual([])
  })

  test('A.5 and RFC 7519 section 6.1: an unsecured token is refused everywhere', () => {
    const unsecured = `eyJhbGciOiJub25lIn0.${payload}.`

    expect(() => readTokenHeader(unsecured)).toThrow(expect.objectContaining({ code: 'INVALID_TOKEN' }))
    expect(() => readHeader(unsecured, SIGNATURE_ALGORITHMS)).toThrow(expect.objectContaining({ code: 'OAUTH_TOKEN_REJECTED' }))
  })
})
