import { createHmac, type KeyObject } from 'node:crypto'
import { isUnderAny, type KeyList } from '../core/keys'
import type { UserRecord } from '../store/auth-store'

/**
 * Returns a digest of the credentials and the state of an account. An unfinished operation (for example, a second-factor challenge) carries
 * the digest. The digest changes with a reset, a password change, a new second factor and a deactivation. It also changes with a
 * verification or change of the address. After such a change, the unfinished operation is invalid.
 *
 * The digest is an HMAC, because browsers see it. A plain hash would let an attacker test password guesses if the host's password hashes
 * are weak.
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
    // A reactivation sets a new time, so that a digest from before the deactivation stays invalid.
    activatedAt?.getTime() ?? null,
    isActive,
  ])
  return createHmac('sha256', key).update(text).digest('base64url')
}

/** Returns true if the digest still matches the account, under any of the keys. */
export function isAccountDigest(keys: KeyList, user: UserRecord, digest: string): boolean {
  return isUnderAny(keys, (key) => accountDigest(key, user) === digest)
}
