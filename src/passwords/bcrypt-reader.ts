import { ConfigurationError } from '../core/errors'
import { seeTroubleshooting } from '../core/troubleshooting'
import { loadBcrypt, readBcryptCost } from './bcrypt'
import type { PasswordReader } from './password-reader'

/**
 * Reads `$2a$`, `$2b$` and PHP's `$2y$` with cost 4 to 15. Only the first 72 bytes of a password count, as in the system that made the
 * hash. `argon2idHasher()` already reads these hashes. Use this reader with `pepperedReader`, or with `rehashingHasher` and your own
 * hasher.
 * @throws ConfigurationError if the package `bcrypt` is not installed
 */
export function bcryptReader(): PasswordReader {
  const bcrypt = loadBcrypt()
  if (!bcrypt)
    throw new ConfigurationError(
      `bcryptReader() needs the package bcrypt; run \`npm install bcrypt\`. ${seeTroubleshooting('a-package-is-missing')}`,
    )
  const reads = (hash: string) => readBcryptCost(hash) !== null
  return { name: 'bcrypt', reads, verify: async (hash, password) => reads(hash) && bcrypt.verify(hash, password) }
}
