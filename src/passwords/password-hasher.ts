export interface PasswordHasher {
  /** @throws ValidationError with `details: { rule }` for a password it cannot take whole */
  hash(password: string, options?: HashOptions): Promise<string>
  /** Never throws for a hash it cannot read: that is `false`. */
  verify(hash: string, password: string, options?: HashOptions): Promise<boolean>
  /** True when the hash is weaker than what this hasher makes now. */
  needsRehash(hash: string): boolean
  /** Characters of the longest hash it makes; `checkTables` compares it with the column. Absent: nobody looks. */
  readonly hashLength?: number
  /** Bytes of UTF-8 it takes whole; a policy that allows more is held to this. Absent: no limit of its own. */
  readonly maxPasswordBytes?: number
  /**
   * Why `verify` would answer false without working for it; null when it would work. With it a login on a broken row
   * takes as long as any other. Absent: every hash counts as readable.
   */
  unreadable?(hash: string): UnreadableHash | null
  /** Whether `verify` can work with this hash. Absent: nobody knows, and every hash counts as one that it can. */
  reads?(hash: string): boolean
}

export interface HashOptions {
  /** A hasher with a queue calls it when the password leaves the queue and its hash begins: answers are timed from there. */
  onBegin?(): void
  /** Aborted when the client has hung up: a hasher with a queue drops what still waits then, and rejects. */
  readonly signal?: AbortSignal
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
