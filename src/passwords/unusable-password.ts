import { randomBytes } from 'node:crypto'
import type { UserRecord } from '../store/auth-store'

/**
 * Returns what a user's row has in place of a hash where nobody knows the password: `!` and 43 base64url characters. No
 * password verifies against it. It is new each time, because what was begun under an earlier password ends by the change.
 */
export function unusablePassword(): string {
  return `!${randomBytes(32).toString('base64url')}`
}

export function isUnusablePassword(hash: unknown): boolean {
  return typeof hash === 'string' && /^![\w-]{43}$/.test(hash)
}

/** True where somebody knows the account's password. A table without `password_set_at` says so of every other password. */
export function hasPassword({ passwordSetAt, hashedPassword }: Pick<UserRecord, 'passwordSetAt' | 'hashedPassword'>): boolean {
  return passwordSetAt !== null && !isUnusablePassword(hashedPassword)
}
