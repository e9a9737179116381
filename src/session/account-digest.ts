import { createHmac, type KeyObject } from 'node:crypto'
import { isUnderAny, type KeyList } from '../keys'
import type { UserRecord } from '../store/auth-store'

/**
 * Returns a digest of the credentials and the state of an account. Something that started earlier (a challenge, for example) carries it. It
 * becomes invalid with a reset, a password change, a new second factor, a verification or change of the address, or a deactivation. It is an
 * HMAC, because it passes through browsers and a host's password hashes may be weak.
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
    // A reactivation sets it again, so that a digest from before the deactivation stays invalid.
    activatedAt?.getTime() ?? null,
    isActive,
  ])
  return createHmac('sha256', key).update(text).digest('base64url')
}

/** Returns true if the account still is as it was when the digest was made, under any of the keys. */
export function isAccountDigest(keys: KeyList, user: UserRecord, digest: string): boolean {
  return isUnderAny(keys, (key) => accountDigest(key, user) === digest)
}
