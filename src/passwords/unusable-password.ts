import { randomBytes } from 'node:crypto'
import type { UserRecord } from '../store/auth-store'

/**
 * Returns the value of the hash column for an account without a password: `!` and 43 base64url characters. No password matches this value.
 * Each call returns a new value, because a change of the value invalidates everything that began under the earlier password.
 */
export function unusablePassword(): string {
  return `!${randomBytes(32).toString('base64url')}`
}

export function isUnusablePassword(hash: unknown): boolean {
  return typeof hash === 'string' && /^![\w-]{43}$/.test(hash)
}

/**
 * Returns true if a person knows the account's password. If the table has no column `password_set_at`, the function returns true for every
 * hash that is not an unusable password.
 */
export function hasPassword({ passwordSetAt, hashedPassword }: Pick<UserRecord, 'passwordSetAt' | 'hashedPassword'>): boolean {
  return passwordSetAt !== null && !isUnusablePassword(hashedPassword)
}
