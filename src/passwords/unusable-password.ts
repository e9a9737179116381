import { randomBytes } from 'node:crypto'
import type { UserRecord } from '../store/auth-store'

/**
 * Returns the value for the hash column if nobody knows the password: `!` and 43 base64url characters. No password matches it. It is new
 * each time, because the change ends everything that was begun under an earlier password.
 */
export function unusablePassword(): string {
  return `!${randomBytes(32).toString('base64url')}`
}

export function isUnusablePassword(hash: unknown): boolean {
  return typeof hash === 'string' && /^![\w-]{43}$/.test(hash)
}

/**
 * Returns true if a person knows the account's password. Without the column `password_set_at`, that is every hash that is not an unusable
 * password.
 */
export function hasPassword({ passwordSetAt, hashedPassword }: Pick<UserRecord, 'passwordSetAt' | 'hashedPassword'>): boolean {
  return passwordSetAt !== null && !isUnusablePassword(hashedPassword)
}
