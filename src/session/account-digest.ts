import { createHmac, type KeyObject } from 'node:crypto'
import { isUnderAny, type KeyList } from '../keys'
import type { UserRecord } from '../store/auth-store'

/**
 * Stands for what lets people into an account: something begun earlier carries it, and ends with the first reset,
 * password change, second factor, proof or change of the address or deactivation in between. Under a key, because it travels
 * through browsers and a host's password hashes may be weak.
 */
export function accountDigest(key: KeyObject, user: UserRecord): string {
  const { id, email, hashedPassword, totpEnabledAt, emailVerifiedAt, activatedAt, isActive } = user
  const text = JSON.stringify([
    'account',
    id,
    email,
    hashedPassword,
    totpEnabledAt?.getTime() ?? null,
    emailVerifiedAt?.getTime() ?? null,
    // Stamped anew when an account that was closed is opened again: what was begun before does not come back.
    activatedAt?.getTime() ?? null,
    isActive,
  ])
  return createHmac('sha256', key).update(text).digest('base64url')
}

/** True while the account is what it was when the digest was made, under any of the keys. */
export function isAccountDigest(keys: KeyList, user: UserRecord, digest: string): boolean {
  return isUnderAny(keys, (key) => accountDigest(key, user) === digest)
}
