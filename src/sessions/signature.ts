import type { KeyObject } from 'node:crypto'
import jwt from 'jsonwebtoken'
import type { AccessKey, JwtAlgorithm, NamedAccessKey, SecretAccessKey } from '../core/keys'

/** A key that verifies signatures. */
export type VerifyingKey = Pick<SecretAccessKey, 'algorithm' | 'keys'> | Pick<NamedAccessKey, 'algorithm' | 'key'>

interface SigningKey extends Pick<AccessKey, 'algorithm' | 'kid'> {
  readonly privateKey: KeyObject
}

/** Signs claims as a compact JWS (RFC 7515 section 7.1). The header is exactly alg, typ and, if the key has one, kid. */
export function signClaims({ algorithm, kid, privateKey }: SigningKey, claims: object, typ: 'JWT' | 'at+jwt' = 'JWT'): string {
  return jwt.sign(claims, privateKey, { algorithm, header: { alg: algorithm, typ }, ...(kid !== null && { keyid: kid }) })
}

/**
 * Returns the payload of a token that the key signed under its own algorithm (RFC 8725 section 3.1). Null for every other token. The caller
 * checks the characters and the header before this call, and the claims after it. This function ignores `exp`. The caller checks `exp`,
 * also for a remembered token, whose signature is not verified again.
 */
export function readSigned(verifying: VerifyingKey, token: string): unknown {
  if (verifying.algorithm !== 'HS256') return isCanonical(token) ? payloadOf(token, verifying.key, verifying.algorithm) : null
  // Tries every key, so that the time does not reveal which key signed.
  const payloads = verifying.keys.map((key) => payloadOf(token, key, 'HS256'))
  return payloads.find((payload) => payload !== null) ?? null
}

/**
 * Returns true if the signature is encoded in its only valid form. The spare bits of the last character would allow sixteen texts for one
 * signature (RFC 4648 section 3.5). Four characters are three bytes, so only the characters after the last full four can have spare bits.
 */
function isCanonical(token: string): boolean {
  const length = token.length - token.lastIndexOf('.') - 1
  const end = token.slice(token.length - (length % 4))
  return Buffer.from(end, 'base64url').toString('base64url') === end
}

function payloadOf(token: string, key: KeyObject, algorithm: 'HS256' | JwtAlgorithm): unknown {
  try {
    return jwt.verify(token, key, { algorithms: [algorithm], ignoreExpiration: true, ignoreNotBefore: true })
  } catch {
    return null // jsonwebtoken gives the reason; the client must not learn it
  }
}
