import type { KeyObject } from 'node:crypto'
import jwt from 'jsonwebtoken'
import type { KeyList } from '../core/keys'

const maxLength = 4096
const header = { alg: 'HS256', typ: 'JWT' } as const
// The only valid header. A comparison of the whole text rejects every other algorithm, `crit` and `jku` at once.
const encodedHeader = `${Buffer.from(JSON.stringify(header)).toString('base64url')}.`

/**
 * Signs a token that only this service reads. Each purpose has its own key. So a token of one purpose is invalid for every other purpose
 * (RFC 8725 section 3.12).
 */
export function signPrivateToken(key: KeyObject, claims: { typ: string; exp: number; iat: number } & Record<string, unknown>): string {
  return jwt.sign(claims, key, { algorithm: header.alg, header })
}

/**
 * Returns the claims of a valid token of this type, under any of the keys. Null: the signature, the shape, the time or the type is wrong.
 */
export function readPrivateToken(keys: KeyList, token: string, { typ, at }: { typ: string; at: Date }): Record<string, unknown> | null {
  if (token.length > maxLength || !token.startsWith(encodedHeader)) return null
  const claims = keys.map((key) => verified(key, token, at)).find((found) => found !== null)
  return claims?.['typ'] === typ && typeof claims['exp'] === 'number' ? claims : null
}

function verified(key: KeyObject, token: string, at: Date): Record<string, unknown> | null {
  try {
    const payload: unknown = jwt.verify(token, key, { algorithms: [header.alg], clockTimestamp: epochSeconds(at), clockTolerance: 0 })
    return typeof payload === 'object' && payload !== null ? (payload as Record<string, unknown>) : null
  } catch {
    return null
  }
}

export function epochSeconds(instant: Date): number {
  return Math.floor(instant.getTime() / 1000)
}
