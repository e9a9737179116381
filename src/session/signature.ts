import { constants, createHmac, type KeyObject, sign, timingSafeEqual, verify } from 'node:crypto'
import { type AccessKey, isUnderAny, type NamedAccessKey, type SecretAccessKey } from '../keys'

/** What a signature is checked with. */
export type VerifyingKey = Pick<SecretAccessKey, 'algorithm' | 'keys'> | Pick<NamedAccessKey, 'algorithm' | 'key'>

/**
 * The last part of a compact JWS, under the two before it. By node:crypto too: what jsonwebtoken.sign checks on the way is ours
 * and known, and costs a refresh more than the signature does.
 */
export function signatureOf(
  { algorithm, privateKey }: { algorithm: AccessKey['algorithm']; privateKey: KeyObject },
  signed: string,
): string {
  if (algorithm === 'HS256') return hmacOf(privateKey, signed)
  return sign('sha256', Buffer.from(signed), inputOf[algorithm](privateKey)).toString('base64url')
}

/**
 * Whether the last part of a compact JWS signs the two before it (RFC 7515 section 5.2), under the key's own algorithm
 * (RFC 7518 section 3). By node:crypto: jsonwebtoken.verify takes apart and parses a token twice, which is most of what a
 * guard costs at the first sight of one (test/bench/guard.mts), to find an algorithm and a header that are decided before.
 */
export function isSigned(verifying: VerifyingKey, token: string): boolean {
  const end = token.lastIndexOf('.')
  const signed = token.slice(0, end)
  const signature = token.slice(end + 1)
  if (verifying.algorithm === 'HS256') return isUnderAny(verifying.keys, (key) => isSameSignature(hmacOf(key, signed), signature))
  const { algorithm, key } = verifying
  const bytes = Buffer.from(signature, 'base64url')
  // One signature, one text: the spare bits of its last character would make sixteen (RFC 4648 section 3.5).
  if (bytes.toString('base64url') !== signature) return false
  try {
    return verify('sha256', Buffer.from(signed), inputOf[algorithm](key), bytes)
  } catch {
    return false // whatever OpenSSL cannot make sense of signs nothing
  }
}

function hmacOf(key: KeyObject, signed: string): string {
  return createHmac('sha256', key).update(signed).digest('base64url')
}

function isSameSignature(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
}

const inputOf = {
  ES256: (key: KeyObject) => ({ key, dsaEncoding: 'ieee-p1363' as const }),
  RS256: (key: KeyObject) => ({ key, padding: constants.RSA_PKCS1_PADDING }),
  PS256: (key: KeyObject) => ({ key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }),
}
