/** Verifies passwords against the hashes of another system. A reader makes no hashes. */
export interface PasswordReader {
  readonly name: string
  /** Returns true if `verify` can read this hash. */
  reads(hash: string): boolean
  /** Returns true if the password matches. Returns false for a hash that the reader cannot read. */
  verify(hash: string, password: string): Promise<boolean>
}

/**
 * Returns true if the password contains NUL. HMAC pads its key with NUL. So a password with NULs at its end would match the hash of the
 * password without NULs.
 */
export function hasNul(password: string): boolean {
  return password.includes('\0')
}

/**
 * The most iterations that a reader runs. There is a limit, because a row of the table must not keep a thread busy for minutes. No known
 * system uses more.
 */
export const mostIterations = 10_000_000
