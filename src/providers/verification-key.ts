import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import type { SignatureAlgorithm } from './jws'
import { isPlainObject } from './provider-request'

/** A public key fit to check signatures, and the algorithms it may check. */
export interface VerificationKey {
  key: KeyObject
  algorithms: readonly SignatureAlgorithm[]
}

/**
 * One member of a JWK set (RFC 7517 section 4); null when it must not check signatures: another use, symmetric, private,
 * a weak or monstrous RSA key, another curve. Node imports RSA keys with e = 1 and moduli of one bit; we do not.
 */
export function readVerificationKey(jwk: unknown): VerificationKey | null {
  if (!isPlainObject(jwk) || !isForSignatures(jwk) || Object.hasOwn(jwk, 'd') || !isOfSaneSize(jwk)) return null
  const key = importKey(jwk)
  const possible = key ? algorithmsFor(key) : []
  const algorithms = jwk['alg'] === undefined ? possible : possible.filter((algorithm) => algorithm === jwk['alg'])
  return key && algorithms.length > 0 ? { key, algorithms } : null
}

/**
 * Not KeyObject.equals: two keys of different types leave an error in OpenSSL's queue there, which the next private key
 * that is read in this process then fails with (Node 20).
 */
export function isSamePublicKey(one: KeyObject, other: KeyObject): boolean {
  const [bytes, otherBytes] = [one, other].map((key) => key.export({ type: 'spki', format: 'der' }))
  return bytes !== undefined && otherBytes !== undefined && bytes.equals(otherBytes)
}

function isForSignatures({ use, key_ops: operations }: Record<string, unknown>): boolean {
  if (use !== undefined && use !== 'sig') return false
  return operations === undefined || (Array.isArray(operations) && operations.includes('verify'))
}

/** Before the import: 8192 bits are 1366 characters. */
function isOfSaneSize(jwk: Record<string, unknown>): boolean {
  return ['n', 'e', 'x', 'y'].every((name) => jwk[name] === undefined || String(jwk[name]).length <= 1400)
}

function importKey(jwk: Record<string, unknown>): KeyObject | null {
  const { kty, n, e, crv, x, y } = jwk
  if (kty !== 'RSA' && kty !== 'EC' && kty !== 'OKP') return null
  try {
    const wanted = kty === 'RSA' ? { kty, n, e } : { kty, crv, x, ...(kty === 'EC' && { y }) }
    return createPublicKey({ key: wanted as JsonWebKey, format: 'jwk' }) // wrong member types are the import's to refuse
  } catch {
    return null // not a key: the set's other keys may be
  }
}

const RSA_ALGORITHMS: readonly SignatureAlgorithm[] = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
const CURVES: Readonly<Record<string, SignatureAlgorithm>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' }

/** What a public key of sound size may check; none when it may check nothing. */
export function algorithmsFor(key: KeyObject): readonly SignatureAlgorithm[] {
  const { modulusLength = 0, publicExponent = 0n, namedCurve = '' } = key.asymmetricKeyDetails ?? {}
  if (key.asymmetricKeyType === 'ed25519') return ['EdDSA']
  if (key.asymmetricKeyType === 'ec') return CURVES[namedCurve] ? [CURVES[namedCurve]] : []
  if (key.asymmetricKeyType !== 'rsa') return []
  const isStrong = modulusLength >= 2048 && modulusLength <= 8192 && publicExponent >= 65_537n && publicExponent <= 0xffff_ffffn
  return isStrong ? RSA_ALGORITHMS : []
}
