export interface PasswordHasher {
  /** Hashes a password. @throws ValidationError with `details: { rule }` for a password that the hasher cannot hash completely */
  hash(password: string, options?: HashOptions): Promise<string>
  /** Returns true if the password matches. Returns false for a hash that the hasher cannot read. Never throws for an unreadable hash. */
  verify(hash: string, password: string, options?: HashOptions): Promise<boolean>
  /** Returns true if the hash is weaker than a new hash. */
  needsRehash(hash: string): boolean
  /** The characters of the longest hash, which `checkTables` compares with the column's width. Absent: the width is not checked. */
  readonly hashLength?: number
  /** The most bytes of UTF-8 that the hasher hashes completely. If a policy allows more bytes, this limit applies. Absent: no limit. */
  readonly maxPasswordBytes?: number
  /**
   * Returns the reason if `verify` would return false without computing a hash. Returns null if `verify` would compute a hash. With this
   * method, a login with an unreadable hash takes as long as any other login. Absent: every hash counts as readable.
   */
  unreadable?(hash: string): UnreadableHash | null
  /** Returns true if `verify` can read this hash. Absent: every hash counts as readable. */
  reads?(hash: string): boolean
}

export interface HashOptions {
  /** Called when a password leaves the hasher's queue and hashing begins. Response times are measured from that moment. */
  onBegin?(): void
  /** The signal is aborted when the client disconnects. A hasher with a queue then drops a password that still waits, and rejects. */
  readonly signal?: AbortSignal
  /** The network of the client: an IPv4 address, or the /48 of an IPv6 address. In a hasher with a queue, networks take turns. */
  readonly network?: string | undefined
  /** True: the request comes from a known device of the account, or from a session. A hasher with a queue has a lane of its own for them. */
  readonly isKnownDevice?: boolean
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
   * Your own rule. Returns the name of the rule that rejects the password (`[A-Za-z][A-Za-z0-9_]*`, at most 64 characters), or null. The
   * rule has 3 seconds. An error or a late answer counts as null, so that an outage of another service locks nobody out.
   */
  check?(password: string, about: { email: string; name: string | null }): Promise<string | null>
}
