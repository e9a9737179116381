import { createHash } from 'node:crypto'
import type { PasswordHasher } from '../../src/passwords/password-types'

/** For tests that are not about hashing: argon2's price is its point, and nothing here is worth it. */
export function fastHasher(): PasswordHasher & { hashed: number } {
  return {
    hashed: 0,
    async hash(password) {
      this.hashed += 1
      return `test$${createHash('sha256').update(password).digest('hex')}`
    },
    async verify(hash, password) {
      return hash === `test$${createHash('sha256').update(password).digest('hex')}`
    },
    needsRehash: () => false,
  }
}
