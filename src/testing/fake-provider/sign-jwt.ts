import { createHash, createHmac, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto'

/** Signs by hand (RFC 7515), so that a test can sign claims that a library would reject. */
export function signJwt(claims: unknown, header: Record<string, unknown>, key: KeyObject | string = signingKeys().privateKey): string {
  const signed = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${signed}.${signature(signed, String(header['alg']), key).toString('base64url')}`
}

function signature(text: string, alg: string, key: KeyObject | string): Buffer {
  if (alg === 'none') return Buffer.alloc(0)
  if (typeof key === 'string') return createHmac('sha256', key).update(text).digest()
  return sign(`sha${alg.slice(2)}`, Buffer.from(text), {
    key,
    ...(alg.startsWith('ES') ? { dsaEncoding: 'ieee-p1363' as const } : {}),
    ...(alg.startsWith('PS') ? { padding: 6, saltLength: -1 } : {}),
  })
}

/**
 * Returns one key pair for the whole process. The first call makes the pair. The module does not make it when it loads, because that takes
 * a tenth of a second.
 */
export function signingKeys(): { publicKey: KeyObject; privateKey: KeyObject } {
  keys ??= generateKeyPairSync('rsa', { modulusLength: 2048 })
  return keys
}
let keys: { publicKey: KeyObject; privateKey: KeyObject } | null = null

/** Returns the keys that `appleOptions()` uses. The private key signs the client secrets, and the fake provider knows the public key. */
export function appleKeys(): { publicKey: KeyObject; privateKey: KeyObject } {
  teamKeys ??= generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return teamKeys
}
let teamKeys: { publicKey: KeyObject; privateKey: KeyObject } | null = null

/** Returns the claims of an ES256 JWT. Null: another key signed the JWT, or it is malformed. */
export function claimsSignedBy(jwt: string, key: KeyObject): Record<string, unknown> | null {
  const [header = '', claims = '', signature = ''] = jwt.split('.')
  const signed = Buffer.from(`${header}.${claims}`)
  if (!verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'))) return null
  return JSON.parse(Buffer.from(claims, 'base64url').toString('utf8')) as Record<string, unknown>
}

/** Returns the PKCE challenge of a verifier, by S256 (RFC 7636 section 4.2). */
export function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url')
}
