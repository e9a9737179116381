import type { KeyObject } from 'node:crypto'
import jwt from 'jsonwebtoken'
import type { KeyList } from '../keys'

const maxLength = 4096
const header = { alg: 'HS256', typ: 'JWT' } as const
// The one header there is. Comparing it whole refuses every other algorithm, `crit`, `jku` and the rest at once.
const encodedHeader = `${Buffer.from(JSON.stringify(header)).toString('base64url')}.`

/**
 * A token that only this service reads. Under a key of its own purpose: refused in every other slot, as every other token is in
 * its own (RFC 8725 section 3.12).
 */
export function signPrivateToken(key: KeyObject, claims: { typ: string; exp: number; iat: number } & Record<string, unknown>): string {
  return jwt.sign(claims, key, { algorithm: header.alg, header })
}

/** The claims of a living token of this type, under any of the keys; null for whatever else: signature, shape, time and type are one refusal. */
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
