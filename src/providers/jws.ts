import { constants, createHmac, type KeyObject, sign, verify } from 'node:crypto'
import { constantTimeEqual } from '../core/constant-time-equal'

/** The asymmetric algorithms of RFC 7518 section 3.1, and Ed25519 of RFC 8037. The library accepts no other algorithm from a provider. */
export const SIGNATURE_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'] as const
export type SignatureAlgorithm = (typeof SIGNATURE_ALGORITHMS)[number]
/** HS256 counts only for id_tokens, and only if the client names it in `idTokenAlgorithms`. Its key is the client secret. */
export type IdTokenAlgorithm = SignatureAlgorithm | 'HS256'

/** Returns the name that this library uses. RFC 9864 calls EdDSA on Curve25519 `Ed25519`, and a provider may use either name. */
export function algorithmNamed(name: unknown): unknown {
  return name === 'Ed25519' ? 'EdDSA' : name
}

/** Returns a compact JWS (RFC 7515 section 3.1) of these claims. The key's type must fit `alg`. */
export function signJwt(claims: object, { key, alg, kid }: { key: KeyObject; alg: SignatureAlgorithm; kid: string | null }): string {
  const header = { alg, typ: 'JWT', ...(kid !== null && { kid }) }
  const signed = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${signed}.${sign(hashOf(alg), Buffer.from(signed), { key, ...formOf(alg) }).toString('base64url')}`
}

/** Returns true if `key` signed this compact JWS with `alg`. The key's type must fit `alg` (`algorithmsFor`). */
export function isSignedBy(token: string, key: KeyObject, alg: IdTokenAlgorithm): boolean {
  const end = token.lastIndexOf('.')
  // A public key is no secret, so a MAC made with a public key proves nothing (RFC 8725 section 2.1).
  if (alg === 'HS256' || key.type !== 'public')
    return alg === 'HS256' && key.type === 'secret' && constantTimeEqual(macOf(token.slice(0, end), key), token.slice(end + 1))
  const signature = Buffer.from(token.slice(end + 1), 'base64url')
  return verify(hashOf(alg), Buffer.from(token.slice(0, end)), { key, ...formOf(alg) }, signature)
}

function macOf(signed: string, key: KeyObject): string {
  return createHmac('sha256', key).update(signed).digest('base64url')
}

/** Returns the name of the hash. Null: EdDSA, which needs no separate hash. */
function hashOf(alg: SignatureAlgorithm): string | null {
  return alg === 'EdDSA' ? null : `sha${alg.slice(2)}`
}

/** An ECDSA signature is R and S joined (RFC 7518 section 3.4). The salt of PSS is as long as the hash (section 3.5). */
function formOf(alg: SignatureAlgorithm) {
  if (alg.startsWith('PS')) return { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
  return alg.startsWith('ES') ? { dsaEncoding: 'ieee-p1363' as const } : {}
}
