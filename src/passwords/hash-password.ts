import type { HashOptions, PasswordHasher } from './password-types'

/**
 * Hashes a password in its normal form (NFC; NIST SP 800-63B section 3.1.1.2). Keyboards write `é` as one code point or as two, and both
 * must be the same password. `verifyPassword` normalizes too.
 * @throws ValidationError, ServiceUnavailableError of the hasher
 */
export function hashPassword(
  { hasher }: { readonly hasher: PasswordHasher },
  password: string,
  options: HashOptions = {},
): Promise<string> {
  return hasher.hash(normalPassword(password), options)
}

/** No password is as long. Such a text stays as it is, because its normalization could take long. */
const longestNormalized = 4_096

/** Returns the password in its normal form (NFC). */
export function normalPassword(password: string): string {
  return password.length > longestNormalized ? password : password.normalize('NFC')
}
