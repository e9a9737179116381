export interface PasswordHasher {
  /** @throws ValidationError with `details: { rule }` for a password it cannot take whole */
  hash(password: string): Promise<string>
  /** Never throws for a hash it cannot read: that is `false`. */
  verify(hash: string, password: string): Promise<boolean>
  /** True when the hash is weaker than what this hasher makes now. */
  needsRehash(hash: string): boolean
  /** Bytes of UTF-8 it takes whole; a policy that allows more is held to this. Absent: no limit of its own. */
  readonly maxPasswordBytes?: number
  /**
   * Why `verify` would answer false without working for it; null when it would work. With it a login on a broken row
   * takes as long as any other. Absent: every hash counts as readable.
   */
  unreadable?(hash: string): UnreadableHash | null
}

export type UnreadableHash = 'unknown_format' | 'bcrypt_not_installed'

export interface PasswordPolicy {
  /** Characters (code points). */
  minLength?: number
  /** Bytes of UTF-8. */
  maxBytes?: number
  /** Lower, upper, digit and special each at least once. */
  requireComplexity?: boolean
  /**
   * A further rule of the host: the name of the rule that refuses (`[A-Za-z][A-Za-z0-9_]*`, at most 64 characters), or
   * null. It has 3 seconds; an error or a late answer counts as null, so that an outage elsewhere locks nobody out.
   */
  check?(password: string, about: { email: string; name: string | null }): Promise<string | null>
}
