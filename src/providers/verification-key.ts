import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { algorithmNamed, type SignatureAlgorithm } from './jws'
import { isPlainObject } from './provider-request'

/** A public key for checking signatures, and the algorithms that it may check. */
export interface VerificationKey {
  key: KeyObject
  algorithms: readonly SignatureAlgorithm[]
}

/**
 * Reads one member of a JWK set (RFC 7517 section 4). Returns null if the key must not check signatures. Rejects a key for another use, a
 * symmetric or private key, a key on another curve, and a weak or very large RSA key. Node itself accepts even RSA keys with e = 1 or a
 * modulus of one bit.
 */
export function readVerificationKey(jwk: unknown): VerificationKey | null {
  if (!isPlainObject(jwk) || !isForSignatures(jwk) || Object.hasOwn(jwk, 'd') || !isOfSaneSize(jwk)) return null
  const key = importKey(jwk)
  const possible = key ? algorithmsFor(key) : []
  const algorithms = jwk['alg'] === undefined ? possible : possible.filter((algorithm) => algorithm === algorithmNamed(jwk['alg']))
  return key && algorithms.length > 0 ? { key, algorithms } : null
}

/**
 * Returns true if both are the same key. Compares the exported bytes, and does not call KeyObject.equals. For two keys of different types,
 * KeyObject.equals leaves an error in OpenSSL's queue. The next read of a private key in this process then fails (Node 20).
 */
export function isSamePublicKey(one: KeyObject, other: KeyObject): boolean {
  const [bytes, otherBytes] = [one, other].map((key) => key.export({ type: 'spki', format: 'der' }))
  return bytes !== undefined && otherBytes !== undefined && bytes.equals(otherBytes)
}

function isForSignatures({ use, key_ops: operations }: Record<string, unknown>): boolean {
  if (use !== undefined && use !== 'sig') return false
  return operations === undefined || (Array.isArray(operations) && operations.includes('verify'))
}

/** Checks the size before the import: 8192 bits are 1366 characters. */
function isOfSaneSize(jwk: Record<string, unknown>): boolean {
  return ['n', 'e', 'x', 'y'].every((name) => jwk[name] === undefined || String(jwk[name]).length <= 1400)
}

function importKey(jwk: Record<string, unknown>): KeyObject | null {
  const { kty, n, e, crv, x, y } = jwk
  if (kty !== 'RSA' && kty !== 'EC' && kty !== 'OKP') return null
  try {
    const wanted = kty === 'RSA' ? { kty, n, e } : { kty, crv, x, ...(kty === 'EC' && { y }) }
    return createPublicKey({ key: wanted as JsonWebKey, format: 'jwk' }) // the import rejects members of a wrong type
  } catch {
    return null // the member is not a key, but other keys of the set can be usable
  }
}

const RSA_ALGORITHMS: readonly SignatureAlgorithm[] = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
const CURVES: Readonly<Record<string, SignatureAlgorithm>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' }

/** Returns the algorithms that a public key of a safe size may check. The list is empty if the key may check no signature. */
export function algorithmsFor(key: KeyObject): readonly SignatureAlgorithm[] {
  const { modulusLength = 0, publicExponent = 0n, namedCurve = '' } = key.asymmetricKeyDetails ?? {}
  if (key.asymmetricKeyType === 'ed25519') return ['EdDSA']
  if (key.asymmetricKeyType === 'ec') return CURVES[namedCurve] ? [CURVES[namedCurve]] : []
  if (key.asymmetricKeyType !== 'rsa') return []
  const isStrong = modulusLength >= 2048 && modulusLength <= 8192 && publicExponent >= 65_537n && publicExponent <= 0xffff_ffffn
  return isStrong ? RSA_ALGORITHMS : []
}
