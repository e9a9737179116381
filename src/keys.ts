import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'

/** What a derived key is for. One key per purpose: nothing signed for one passes in another's place (RFC 8725 section 3.12). */
export type KeyPurpose = 'access' | 'mfa' | 'refresh' | 'refresh-successor' | 'state' | 'pkce' | 'nonce'

/** HKDF-SHA256 (RFC 5869), empty salt, info `doorward/<purpose>/v1`, 32 bytes. Made once at boot: a KeyObject is costly. */
export function deriveKey(secret: string, purpose: KeyPurpose | 'csrf'): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', Buffer.from(secret, 'utf8'), Buffer.alloc(0), `doorward/${purpose}/v1`, 32)))
}

export type Keys = Readonly<Record<KeyPurpose, KeyObject>>

export function deriveKeys(secret: string): Keys {
  const purposes = ['access', 'mfa', 'refresh', 'refresh-successor', 'state', 'pkce', 'nonce'] as const
  return Object.freeze(
    Object.fromEntries(purposes.map((purpose) => [purpose, deriveKey(secret, purpose)])) as Record<KeyPurpose, KeyObject>,
  ) // every purpose is listed
}
