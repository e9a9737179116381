import { ConfigurationError } from '../errors'
import { seeTroubleshooting } from '../troubleshooting'
import { loadBcrypt, readBcryptCost } from './bcrypt'
import type { PasswordReader } from './password-reader'

/**
 * `$2a$`, `$2b$` and PHP's `$2y$`, cost 4 to 15, by their first 72 bytes as the system that made them did. `argon2idHasher()` reads them by itself;
 * this one is for a pepper, and for `rehashingHasher` around a hasher of your own.
 * @throws ConfigurationError where the package `bcrypt` is not installed
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
