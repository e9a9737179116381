import { constants, type KeyObject, sign, verify } from 'node:crypto'

/** The asymmetric algorithms of RFC 7518 section 3.1, and Ed25519 of RFC 8037. The library accepts no other algorithm from a provider. */
export const SIGNATURE_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'] as const
export type SignatureAlgorithm = (typeof SIGNATURE_ALGORITHMS)[number]

/** Returns a compact JWS (RFC 7515 section 3.1) of these claims. The key's type must fit `alg`. */
export function signJwt(claims: object, { key, alg, kid }: { key: KeyObject; alg: SignatureAlgorithm; kid: string | null }): string {
  const header = { alg, typ: 'JWT', ...(kid !== null && { kid }) }
  const signed = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${signed}.${sign(hashOf(alg), Buffer.from(signed), { key, ...formOf(alg) }).toString('base64url')}`
}

/** Returns true if `key` signed this compact JWS with `alg`. The key's type must fit `alg` (`algorithmsFor`). */
export function isSignedBy(token: string, key: KeyObject, alg: SignatureAlgorithm): boolean {
  const end = token.lastIndexOf('.')
  const signature = Buffer.from(token.slice(end + 1), 'base64url')
  return verify(hashOf(alg), Buffer.from(token.slice(0, end)), { key, ...formOf(alg) }, signature)
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
