import { createPublicKey, generateKeyPairSync, type JsonWebKey, type KeyObject } from 'node:crypto'
import { type CborMap, decodeCbor } from './cbor'

/** The algorithms ES256, EdDSA and RS256 (RFC 9053 and RFC 8812), in the order of our preference. */
export const algorithms = [-7, -8, -257] as const

const [kty, alg] = [1, 3]
/** Limits for the length of RSA keys, in bytes. The client chooses the key, and a longer key makes verification slower. */
const [leastRsaBytes, mostRsaBytes, mostExponentBytes] = [256, 1_024, 4]
const leastExponent = 3n

/**
 * Returns the key of a COSE_Key (RFC 9052 section 7). The key's type, curve and lengths must match its algorithm, and the key must have no
 * other parameters. Allowed are P-256, Ed25519, and RSA from 2,048 to 8,192 bits. Returns null for any other key.
 */
export function readCoseKey(bytes: Buffer): KeyObject | null {
  try {
    const key = decodeCbor(bytes)
    const jwk = key instanceof Map ? jwkOf(key) : null
    const imported = jwk && createPublicKey({ key: jwk, format: 'jwk' })
    return imported && isFit(imported) ? imported : null
  } catch {
    return null // invalid CBOR, or a point that is not on the curve
  }
}

/**
 * Returns false for a weak RSA key. Zeros in front of a short modulus do not count as bits. An RSA key with the exponent 1 or an even
 * exponent protects nothing.
 */
function isFit({ asymmetricKeyDetails: { modulusLength, publicExponent } = {} }: KeyObject): boolean {
  if (modulusLength === undefined || publicExponent === undefined) return true
  return modulusLength >= leastRsaBytes * 8 && publicExponent >= leastExponent && publicExponent % 2n === 1n
}

/**
 * Returns true if an ES256 signature is exactly one DER sequence. Signatures of other algorithms have a fixed length, which the
 * verification checks.
 */
export function isWholeSignature(publicKey: Buffer, signature: Buffer): boolean {
  const key = decodeCbor(publicKey)
  if (!(key instanceof Map) || key.get(alg) !== -7) return true
  return signature.length < 128 && signature[0] === 0x30 && signature[1] === signature.length - 2
}

function jwkOf(key: CborMap): JsonWebKey | null {
  const has = (size: number, wanted: Readonly<Record<number, number>>) =>
    key.size === size && Object.entries(wanted).every(([label, value]) => key.get(Number(label)) === value)
  const text = (label: number, isFit: (length: number) => boolean) => {
    const value = key.get(label)
    if (!Buffer.isBuffer(value) || !isFit(value.length)) throw new RangeError('no such parameter')
    return value.toString('base64url')
  }
  const is32 = (length: number) => length === 32
  if (has(5, { [kty]: 2, [alg]: -7, [-1]: 1 })) return { kty: 'EC', crv: 'P-256', x: text(-2, is32), y: text(-3, is32) }
  if (has(4, { [kty]: 1, [alg]: -8, [-1]: 6 })) return { kty: 'OKP', crv: 'Ed25519', x: text(-2, is32) }
  if (!has(4, { [kty]: 3, [alg]: -257 })) return null
  const modulus = text(-1, (length) => length >= leastRsaBytes && length <= mostRsaBytes)
  return { kty: 'RSA', n: modulus, e: text(-2, (length) => length >= 1 && length <= mostExponentBytes) }
}

/**
 * Returns a public key and discards its private key. With this key, verifying an unknown credential takes as long as verifying a known
 * credential.
 */
export function newEs256Key(): string {
  const { x = '', y = '' } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
  // The CBOR of {1: 2, 3: -7, -1: 1, -2: x, -3: y}
  const [head, before, between] = ['a5010203262001', '215820', '225820'].map((hex) => Buffer.from(hex, 'hex')) as [Buffer, Buffer, Buffer]
  return Buffer.concat([head, before, Buffer.from(x, 'base64url'), between, Buffer.from(y, 'base64url')]).toString('base64url')
}
