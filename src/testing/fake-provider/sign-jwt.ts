import { createHash, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

/** RFC 7515 by hand, so that a test can sign what no library would. */
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

/** One key pair for the whole process, when it is first needed: making it costs a tenth of a second. */
export function signingKeys(): { publicKey: KeyObject; privateKey: KeyObject } {
  keys ??= generateKeyPairSync('rsa', { modulusLength: 2048 })
  return keys
}
let keys: { publicKey: KeyObject; privateKey: KeyObject } | null = null

/** RFC 7636 section 4.2. */
export function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url')
}
