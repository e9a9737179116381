/** Key pairs for access tokens, and tokens no library would sign. */
import { constants, createHmac, createPrivateKey, generateKeyPairSync, type KeyObject, type SigningOptions, sign } from 'node:crypto'
import type { JwtKey } from '../../src'

export type TestKey = JwtKey & { privateKey: string; publicKey: string }

export function makeKey(kid: string, alg: JwtKey['alg']): TestKey {
  const pair = alg === 'ES256' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { kid, alg, privateKey: privatePem(pair.privateKey), publicKey: publicPem(pair.publicKey) }
}

/** What is left of a key that only has to check old tokens. */
export function retired({ kid, alg, publicKey }: TestKey): JwtKey {
  return { kid, alg, publicKey }
}

export function privatePem(key: KeyObject): string {
  return String(key.export({ type: 'pkcs8', format: 'pem' }))
}

export function publicPem(key: KeyObject): string {
  return String(key.export({ type: 'spki', format: 'pem' }))
}

export function base64url(value: unknown): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
}

/** A member of a key set, as our router publishes it. */
export function publicJwk({ kid, alg, privateKey }: TestKey): object {
  const { kty, n, e, crv, x, y } = createPrivateKey(privateKey).export({ format: 'jwk' })
  return { kty, kid, alg, use: 'sig', ...(kty === 'RSA' ? { n, e } : { crv, x, y }) }
}

const options = {
  ES256: { dsaEncoding: 'ieee-p1363' },
  RS256: { padding: constants.RSA_PKCS1_PADDING },
  PS256: { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST },
} satisfies Record<JwtKey['alg'], SigningOptions>

/** RFC 7515 by hand: header and claims go in as they are, whatever the key is for. */
export function signedWith(
  { alg, privateKey }: Pick<TestKey, 'alg' | 'privateKey'>,
  claims: unknown,
  header: unknown,
  more: SigningOptions = {},
): string {
  const text = `${base64url(header)}.${base64url(claims)}`
  return `${text}.${sign('sha256', Buffer.from(text), { key: privateKey, ...options[alg], ...more }).toString('base64url')}`
}

export function signedWithSecret(secret: string | Buffer, claims: unknown, header: unknown): string {
  const text = `${base64url(header)}.${base64url(claims)}`
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
}

/** As our router signs. */
export function tokenUnder(key: TestKey, claims: unknown): string {
  return signedWith(key, claims, { alg: key.alg, typ: 'JWT', kid: key.kid })
}

export function claimsAt(now: Date, changes: object = {}) {
  const iat = Math.floor(now.getTime() / 1000)
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
