/** Verifies passwords against the hashes of another system. It makes no hashes. */
export interface PasswordReader {
  readonly name: string
  /** Returns true if `verify` can read this hash. */
  reads(hash: string): boolean
  /** Returns true if the password matches. False for a hash that it cannot read. */
  verify(hash: string, password: string): Promise<boolean>
}

/**
 * Returns true if the password contains NUL. HMAC pads its key with NUL, so a password that ends with NUL would match the one without it.
 */
export function hasNul(password: string): boolean {
  return password.includes('\0')
}

/** More iterations than any system uses. A row of the table must not keep a thread busy for minutes. */
export const mostIterations = 10_000_000
