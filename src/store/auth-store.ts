/**
 * Where rows live. `createKnexStore` fulfils this contract; a host may bring its own adapter.
 *
 * Rules an adapter must keep:
 * - Strings compare byte-exactly (case, accents and trailing blanks count).
 * - Instants are correct to the millisecond, whatever the time zone of process or server.
 * - A verb that spends something is one guarded statement: of any number of racers, exactly one is told it won.
 * - A unique violation is a `DuplicateRecordError`; a database that cannot be reached, or stays busy after bounded
 *   retries of the whole unit, is a `ServiceUnavailableError`.
 */
export interface AuthStore {
  readonly users: UserStore
  readonly userTokens: UserTokenStore
  /** Required when `oauthEnabled`. */
  readonly identities?: IdentityStore
  /** Required when `mfaEnabled`. */
  readonly recoveryCodes?: RecoveryCodeStore
  /** Absent: refresh tokens are stateless and work until they expire, and there are no server-side sessions (docs/sessions.md). */
  readonly sessions?: SessionStore
  /**
   * One unit of work: all of it is kept or none. Joins when already inside one. Runs at READ COMMITTED; a unit that
   * lost to a deadlock or a serialization failure is run again from the start, a bounded number of times.
   */
  transaction<T>(work: (store: AuthStore) => Promise<T>, options?: UnitOptions): Promise<T>
  /**
   * Runs `effect` once the host has committed, and never when it rolled back. Only on a store inside the host's own
   * transaction, and on the units that join there; everywhere else a unit's own end is its commit. An adapter may leave it
   * out: then the effect runs when our part ends.
   */
  afterCommit?(effect: () => void): void
}

export interface UnitOptions {
  /**
   * Milliseconds from the call. A unit that takes longer, retries included, rejects with a `ServiceUnavailableError` then: its
   * transaction is rolled back, its connection is free again, and no later verb of it reaches the database. A unit that joined
   * another has the deadline of that one.
   */
  readonly deadlineMs?: number
}

/** Every optional table is there. */
export interface CompleteStore extends Required<Omit<AuthStore, 'afterCommit'>>, Pick<AuthStore, 'afterCommit'> {}

export interface UserRecord {
  /** A string to us, whatever the host's key type is; new default rows get a UUID v4. */
  id: string
  /** False: deactivated, or never activated (`activatedAt` null). */
  isActive: boolean
  createdAt: Date
  updatedAt: Date
  /** Lower-cased. */
  email: string
  hashedPassword: string
  isAdmin: boolean
  lastLoginAt: Date | null
  name: string | null
  totpSecret: string | null
  totpEnabledAt: Date | null
  /** The 30-second step of the last accepted TOTP code. */
  totpLastStep: number | null
  /** When the address was proven to belong to the owner; null: never. */
  emailVerifiedAt: Date | null
  activatedAt: Date | null
  /** Null: the password was generated, nobody knows it. */
  passwordSetAt: Date | null
}

/** The adapter fills `id` (integer keys are made by the database). */
export type NewUser = Omit<UserRecord, 'id'>
export type UserChanges = Partial<Omit<UserRecord, 'id' | 'createdAt'>>

/** What a list may be narrowed by; never a secret. Of `totpEnabledAt`, only whether it is null. */
export type FilterableUserField =
  | 'id'
  | 'email'
  | 'name'
  | 'isActive'
  | 'isAdmin'
  | 'createdAt'
  | 'updatedAt'
  | 'lastLoginAt'
  | 'emailVerifiedAt'
  | 'activatedAt'
  | 'totpEnabledAt'

/** A string for `id`, `email` and `name`, a boolean or a Date for the others. */
export type UserFilterValue = string | boolean | Date

/**
 * One condition. No comparison but `isnull` holds for a field that is null. Texts compare byte for byte, also in order;
 * `icontains` alone takes A to Z and a to z for equal. No character of a value is a wildcard. `id` knows `eq`, `ne`, `in`,
 * `not_in` and `isnull`; booleans know no order.
 */
export type UserFilter = { readonly field: FilterableUserField } & (
  | { readonly operator: 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte'; readonly value: UserFilterValue }
  | { readonly operator: 'in' | 'not_in'; readonly value: readonly UserFilterValue[] }
  /** Both ends belong to it. */
  | { readonly operator: 'between'; readonly value: readonly [UserFilterValue, UserFilterValue] }
  | { readonly operator: 'isnull'; readonly value: boolean }
  | { readonly operator: 'contains' | 'icontains' | 'startswith' | 'endswith'; readonly value: string }
)

export interface UserListing {
  /** All of them must hold. */
  filters: readonly UserFilter[]
  /** `next` of the page before; null: from the start. */
  after: string | null
  /** At most so many. */
  limit: number
}

export interface UserPage {
  users: UserRecord[]
  /** Where the next page begins, in the adapter's own words; null: there is none. */
  next: string | null
}

export interface UserStore {
  /** The fields the host's table really has; boot checks read it. */
  readonly fields: ReadonlySet<keyof UserRecord>
  find(id: string): Promise<UserRecord | null>
  /** `email` must be lower-cased already. */
  findByEmail(email: string): Promise<UserRecord | null>
  /** @throws DuplicateRecordError when the address is taken */
  insert(user: NewUser): Promise<UserRecord>
  /** True when the row was there. @throws DuplicateRecordError when the new address is taken */
  update(id: string, changes: UserChanges): Promise<boolean>
  /** Reads the row and keeps every other unit from changing it until this one ends. */
  lock(id: string): Promise<UserRecord | null>
  /**
   * Stamps `lastLoginAt`, stores a rehash where one is given, and keeps the user's row until the unit ends; `updatedAt`
   * stays. Returns the user as it is then. Null, with nothing changed, unless the user is active and its hash is still,
   * byte for byte, the one that was `seen`: a password changed meanwhile is never overwritten (contract section 13, Atomicity).
   */
  recordLogin(seen: { id: string; hashedPassword: string }, at: Date, changes?: { hashedPassword?: string }): Promise<UserRecord | null>
  /** Single use: true when `step` is later than every step accepted before, which it then becomes. */
  advanceTotpStep(id: string, step: number): Promise<boolean>
  /**
   * By `createdAt`, then by id, oldest first. A page goes on where the last one ended, whatever was inserted or deleted
   * meanwhile, and costs the same however many come before it.
   */
  list(listing: UserListing): Promise<UserPage>
  /**
   * The active administrators, in the order of their ids, kept from every other unit until this one ends. Whoever ceased
   * to be one while it waited is not among them. None, where the table has no `isAdmin`.
   */
  lockAdmins(): Promise<UserRecord[]>
}

export interface IdentityRecord {
  id: string
  userId: string
  /** The registration key of the provider client. */
  provider: string
  /** The stable id inside that provider. (provider, subject) is unique; so is (userId, provider). */
  subject: string
  email: string | null
  emailVerified: boolean | null
  name: string | null
  picture: string | null
  createdAt: Date
  lastLoginAt: Date
}

export type NewIdentity = Omit<IdentityRecord, 'id'>

export interface IdentityStore {
  findWithUser(provider: string, subject: string): Promise<{ identity: IdentityRecord; user: UserRecord } | null>
  /** Oldest first. */
  listForUser(userId: string): Promise<IdentityRecord[]>
  /** @throws DuplicateRecordError when the identity is linked already, or the user has one of this provider */
  insert(identity: NewIdentity): Promise<IdentityRecord>
  /**
   * Stamps `lastLoginAt` of the identity and its user and locks the user's row until the unit ends.
   * Null, with nothing changed, unless the link still exists and the user is active.
   */
  recordLogin(link: { userId: string; provider: string; subject: string }, at: Date): Promise<UserRecord | null>
  /** How many were removed: of one provider, or all of them. */
  deleteForUser(userId: string, provider?: string): Promise<number>
}

export type UserTokenPurpose = 'ACTIVATION' | 'PASSWORD_RESET' | 'EMAIL_VERIFICATION' | 'EMAIL_CHANGE' | 'MFA_CHALLENGE'

export interface UserTokenRecord {
  id: string
  userId: string
  /** SHA-256 of the plaintext, hexadecimal; the plaintext is never stored. */
  tokenHash: string
  purpose: UserTokenPurpose
  /** What the token is bound to, for example the new address. */
  payload: string | null
  expiresAt: Date
  usedAt: Date | null
  createdAt: Date
}

/** Which rows `purgeExpired` asks a table to drop. */
export interface Expired {
  /** The rows that ended then, or earlier. */
  before: Date
  /** At most so many in one statement. */
  most: number
}

export interface UserTokenStore {
  /** @throws DuplicateRecordError when the hash is there already */
  insert(token: Omit<UserTokenRecord, 'id'>): Promise<UserTokenRecord>
  /** Whatever its purpose, and also when it is expired or spent. */
  find(tokenHash: string): Promise<UserTokenRecord | null>
  /** Single use: the record for the one caller who spends it; null when unknown, of another purpose, expired or spent. */
  consume(tokenHash: string, purpose: UserTokenPurpose, at: Date): Promise<UserTokenRecord | null>
  /**
   * Supersedes the user's open tokens, of one purpose or all; how many. Also moves their `expiresAt` to `at` where it is
   * later, which tells them from redeemed ones: `consume` leaves usedAt < expiresAt, this leaves expiresAt <= usedAt.
   */
  consumeAllForUser(userId: string, at: Date, purpose?: UserTokenPurpose): Promise<number>
  /**
   * True when `consume` ever spent a token of this user and purpose; one that was superseded does not count. Decides who was
   * never activated where the users table has no `activatedAt` (contract section 10.4).
   */
  wasConsumed(userId: string, purpose: UserTokenPurpose): Promise<boolean>
  /** How many were deleted. Keeps what `wasConsumed` needs where the users table has no `activatedAt`: redeemed activation tokens. */
  deleteExpired(expired: Expired): Promise<number>
}

export interface RecoveryCodeRecord {
  id: string
  userId: string
  codeHash: string
  usedAt: Date | null
}

export interface RecoveryCodeStore {
  /** Removes the user's old set and stores this one. */
  replaceForUser(userId: string, codeHashes: readonly string[]): Promise<void>
  /** Single use: true for the one caller who spends it. */
  consume(userId: string, codeHash: string, at: Date): Promise<boolean>
  deleteForUser(userId: string): Promise<number>
}

/** `tokens`: access and refresh tokens. `session`: a cookie of a server-side session. */
export type SessionKind = 'tokens' | 'session'

/** One row per living session, however long it lives and however often it is refreshed (contract section 14.5). */
export interface SessionRecord {
  /** A UUID v4, made by us. Names the session in lists and in access tokens (`sid`); opens nothing. */
  id: string
  userId: string
  kind: SessionKind
  /** SHA-256 of the one refresh token or session cookie that is valid now, hexadecimal; unique. */
  tokenHash: string
  /** How many rotations there were. */
  generation: number
  /** The last rotation; null: never rotated. The grace window counts from it. */
  rotatedAt: Date | null
  /** The session's methods, space separated. */
  amr: string
  /** When the person last showed a credential; null: never in a way that counts (contract section 24.1). */
  authenticatedAt: Date | null
  /** False: the browser forgets its cookies when it closes. */
  isPersistent: boolean
  ip: string | null
  userAgent: string | null
  /** The registration key of the provider that opened the session. */
  provider: string | null
  /** `sid` of that provider's id_token. */
  providerSid: string | null
  createdAt: Date
  lastSeenAt: Date
  /** The idle end. Never later than `endsAt`. */
  expiresAt: Date
  /** The absolute end, which nothing moves. */
  endsAt: Date
  /** Null while the session is alive. */
  revokedAt: Date | null
}

export interface SessionWithUser {
  session: SessionRecord
  user: UserRecord
}

/** What replaces the valid token of a session of kind `tokens`. */
export interface Rotation {
  /** Of the token that is used up. */
  tokenHash: string
  successorHash: string
  /** Of the successor. */
  generation: number
  /** The new idle end; cut to the session's `endsAt`. */
  expiresAt: Date
  at: Date
}

/** What the new pair is made of. The user's secrets are not even read. */
export interface Rotated {
  session: Pick<SessionRecord, 'id' | 'userId' | 'amr' | 'expiresAt'>
  user: Pick<UserRecord, 'id' | 'email'>
}

/** What `update` may change: the methods, the last proof of presence, and the token together with its generation. */
export type SessionChanges = Partial<Pick<SessionRecord, 'amr' | 'authenticatedAt'>> &
  (Pick<SessionRecord, 'tokenHash' | 'generation'> | { tokenHash?: never; generation?: never })

/** A session is alive while `revokedAt` is null and `expiresAt` is in the future. */
export interface SessionStore {
  /** @throws DuplicateRecordError when the token's hash is taken */
  insert(session: SessionRecord): Promise<void>
  /** The session and its user at one moment, also when the session has ended. Null: no such session, or its user is gone. */
  find(wanted: { id: string } | { tokenHash: string; kind: SessionKind }): Promise<SessionWithUser | null>
  /** Reads a living session inside a transaction and keeps every other one from changing it until this one ends. */
  lock(id: string, at: Date): Promise<SessionRecord | null>
  /**
   * Single use, by one guarded UPDATE: replaces the token of a living session of kind `tokens` whose user is active. Of any number of
   * racers one gets the answer; null, with nothing changed, for everybody else.
   */
  rotate(rotation: Rotation): Promise<Rotated | null>
  /** Changes a session that is not revoked. True when there was one. */
  update(id: string, changes: SessionChanges): Promise<boolean>
  /**
   * Moves `lastSeenAt` and `expiresAt` of a session that is alive at the new `lastSeenAt`, unless it was seen after `seenBy` already. Of
   * any number of racers one gets true.
   */
  touch(id: string, seenBy: Date, slid: Pick<SessionRecord, 'lastSeenAt' | 'expiresAt'>): Promise<boolean>
  /** The living sessions of both kinds, oldest first. */
  listForUser(userId: string, at: Date): Promise<SessionRecord[]>
  /**
   * Ends a session by one guarded UPDATE, also an expired one: a request that began earlier may still take it for alive. True when it was
   * not revoked before, and of that user and kind where they are given.
   */
  revoke(wanted: { id: string; userId?: string; kind?: SessionKind }, at: Date): Promise<boolean>
  /** The same for all sessions of the user, of both kinds, except one. Returns how many were not revoked before. */
  revokeForUser(userId: string, at: Date, options?: { exceptId?: string }): Promise<number>
  /** Deletes sessions that were revoked or expired by then. Returns how many. */
  deleteExpired(expired: Expired): Promise<number>
}

const isDuplicateRecord = Symbol.for('doorward.duplicate-record.v1')

/** A unique rule refused the row. The unit it happened in is dead on PostgreSQL: decide again in a new one. */
export class DuplicateRecordError extends Error {
  override readonly name = 'DuplicateRecordError'

  /** Also those of another copy of the package in the same process. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && isDuplicateRecord in value
  }

  get [isDuplicateRecord](): true {
    return true
  }
}
