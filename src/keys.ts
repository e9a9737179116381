import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'

/** What a derived key is for. One key per purpose: nothing signed for one passes in another's place (RFC 8725 section 3.12). */
export type KeyPurpose = 'access' | 'mfa' | 'refresh' | 'refresh-successor' | 'state' | 'pkce' | 'nonce' | 'cursor'

/** HKDF-SHA256 (RFC 5869), empty salt, info `doorward/<purpose>/v1`, 32 bytes. Made once at boot: a KeyObject is costly. */
export function deriveKey(secret: string, purpose: KeyPurpose | 'csrf'): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', Buffer.from(secret, 'utf8'), Buffer.alloc(0), `doorward/${purpose}/v1`, 32)))
}

export type Keys = Readonly<Record<KeyPurpose, KeyObject>>

export function deriveKeys(secret: string): Keys {
  const purposes = ['access', 'mfa', 'refresh', 'refresh-successor', 'state', 'pkce', 'nonce', 'cursor'] as const
  return Object.freeze(
    Object.fromEntries(purposes.map((purpose) => [purpose, deriveKey(secret, purpose)])) as Record<KeyPurpose, KeyObject>,
  ) // every purpose is listed
}

export type JwtAlgorithm = 'ES256' | 'RS256' | 'PS256'

/** A key of access tokens and the one algorithm it is for, fixed here and never by a token (RFC 8725 section 3.1). */
export type AccessKey = Readonly<
  | { kid: null; algorithm: 'HS256'; key: KeyObject; privateKey: KeyObject }
  /** `key` checks signatures, `privateKey` makes them; null: retired. */
  | { kid: string; algorithm: JwtAlgorithm; key: KeyObject; privateKey: KeyObject | null }
>

/** Without `jwtKeys` there is one, derived from the secret; its tokens name no key. */
export function secretAccessKey(key: KeyObject): AccessKey {
  return Object.freeze({ kid: null, algorithm: 'HS256', key, privateKey: key })
}
