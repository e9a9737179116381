export interface PasswordHasher {
  hash(password: string): Promise<string>
  /** Never throws for a hash it cannot read: that is `false`. */
  verify(hash: string, password: string): Promise<boolean>
  /** True when the hash is weaker than what this hasher makes now. */
  needsRehash(hash: string): boolean
}

export interface PasswordPolicy {
  /** Characters (code points). */
  minLength?: number
  /** Bytes of UTF-8. */
  maxBytes?: number
  /** Lower, upper, digit and special each at least once. */
  requireComplexity?: boolean
  /** A further rule of the host: the name of the rule that refuses, or null. */
  check?(password: string, about: { email: string; name: string | null }): Promise<string | null>
}
