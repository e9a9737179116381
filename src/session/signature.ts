import type { KeyObject } from 'node:crypto'
import jwt from 'jsonwebtoken'
import type { AccessKey, JwtAlgorithm, NamedAccessKey, SecretAccessKey } from '../keys'

/** What a signature is checked with. */
export type VerifyingKey = Pick<SecretAccessKey, 'algorithm' | 'keys'> | Pick<NamedAccessKey, 'algorithm' | 'key'>

interface SigningKey extends Pick<AccessKey, 'algorithm' | 'kid'> {
  readonly privateKey: KeyObject
}

/** Signs claims as a compact JWS (RFC 7515 section 7.1). Its header is exactly alg, typ and, where the key has one, kid. */
export function signClaims({ algorithm, kid, privateKey }: SigningKey, claims: object, typ: 'JWT' | 'at+jwt' = 'JWT'): string {
  return jwt.sign(claims, privateKey, { algorithm, header: { alg: algorithm, typ }, ...(kid !== null && { keyid: kid }) })
}

/**
 * Returns the payload of a token that the key signed under its own algorithm (RFC 8725 section 3.1), and null for every other
 * token. The caller checks the header before and the claims after, `exp` included: a remembered token has its `exp` checked
 * without its signature, and one check serves both.
 */
export function readSigned(verifying: VerifyingKey, token: string): unknown {
  if (verifying.algorithm !== 'HS256') return isCanonical(token) ? payloadOf(token, verifying.key, verifying.algorithm) : null
  // Every key is tried, so that the time does not tell which one signed.
  const payloads = verifying.keys.map((key) => payloadOf(token, key, 'HS256'))
  return payloads.find((payload) => payload !== null) ?? null
}

/** One signature has one text: the spare bits of its last character would make sixteen (RFC 4648 section 3.5). */
function isCanonical(token: string): boolean {
  const signature = token.slice(token.lastIndexOf('.') + 1)
  return Buffer.from(signature, 'base64url').toString('base64url') === signature
}

function payloadOf(token: string, key: KeyObject, algorithm: 'HS256' | JwtAlgorithm): unknown {
  try {
    return jwt.verify(token, key, { algorithms: [algorithm], ignoreExpiration: true, ignoreNotBefore: true })
  } catch {
    return null // jsonwebtoken says why; the client is not told
  }
}
