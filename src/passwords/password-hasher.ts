export interface PasswordHasher {
  /** Hashes a password. @throws ValidationError with `details: { rule }` for a password that it cannot hash completely */
  hash(password: string, options?: HashOptions): Promise<string>
  /** Returns true if the password matches. Returns false for a hash that it cannot read, and never throws for one. */
  verify(hash: string, password: string, options?: HashOptions): Promise<boolean>
  /** Returns true if the hash is weaker than a new one would be. */
  needsRehash(hash: string): boolean
  /** The number of characters of the longest hash it makes. `checkTables` compares it with the column. Absent: the width is not checked. */
  readonly hashLength?: number
  /** The most bytes of UTF-8 that it hashes completely. A policy that allows more is limited to this. Absent: no limit. */
  readonly maxPasswordBytes?: number
  /**
   * Returns why `verify` would return false without computing a hash. Null if it would compute one. With this method a login on a broken
   * row takes as long as any other. Absent: every hash counts as readable.
   */
  unreadable?(hash: string): UnreadableHash | null
  /** Returns true if `verify` can read this hash. Absent: every hash counts as readable. */
  reads?(hash: string): boolean
}

export interface HashOptions {
  /** A hasher with a queue calls it when the password leaves the queue and its hash begins. Response times are measured from there. */
  onBegin?(): void
  /** Aborted when the client has disconnected. A hasher with a queue then drops a password that still waits, and rejects. */
  readonly signal?: AbortSignal
}

export type UnreadableHash = 'unknown_format' | 'bcrypt_not_installed'

export interface PasswordPolicy {
  /** The least number of characters (code points). */
  minLength?: number
  /** The most bytes of UTF-8. */
  maxBytes?: number
  /** True: a password needs a lower-case letter, an upper-case letter, a digit and a special character. */
  requireComplexity?: boolean
  /**
   * Your own rule. Returns the name of the rule that refuses the password (`[A-Za-z][A-Za-z0-9_]*`, at most 64 characters), or null. It has
   * 3 seconds. An error or a late answer counts as null, so that an outage of another service locks nobody out.
   */
  check?(password: string, about: { email: string; name: string | null }): Promise<string | null>
}
