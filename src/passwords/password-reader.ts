/** Checks passwords against the hashes of another system, and makes none. */
export interface PasswordReader {
  readonly name: string
  /** Whether `verify` can work with this hash. */
  reads(hash: string): boolean
  /** False for a hash that it does not read. */
  verify(hash: string, password: string): Promise<boolean>
}

/** HMAC fills its key up with NUL, so a password with one at its end would pass for the one without. */
export function hasNul(password: string): boolean {
  return password.includes('\0')
}

/** More rounds than any system makes: a row of the table must not keep a thread busy for minutes. */
export const mostIterations = 10_000_000
