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
  /**
   * Looks whether the store can do its work: `createAuthRouter` asks it at its start, and refuses requests while an `error` stands. An
   * adapter may leave it out: then nothing is looked at.
   */
  check?(): Promise<TableFinding[]>
}

/** A fault of a table, as `checkTables` finds it. */
export interface TableFinding {
  /** Names the fault for `ignore`, for example `users.email:unique`. Starts with the name of the table's option. */
  readonly key: string
  /** `error`: operations fail or are not safe. `warning`: everything works. */
  readonly level: 'error' | 'warning'
  /** As the database has it. */
  readonly table: string
  /** As the database has it; null: it is about the table, or about several columns. */
  readonly column: string | null
  /** What is wrong, what follows from it, and how to mend it. Holds no value of a row. */
  readonly message: string
  /** The statement that mends it; null: none does, or an option does. */
  readonly sql: string | null
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
export interface CompleteStore extends Required<Omit<AuthStore, 'afterCommit' | 'check'>>, Pick<AuthStore, 'afterCommit'> {}

export interface UserRecord {
  /** A string to us, whatever the host's key type is; new default rows get a UUID v4. */
  id: string
  /** False: deactivated, or never activated (`activatedAt` null). */
  isActive: boolean
  /** When the account was made. */
  createdAt: Date
  /** When the row last changed. */
  updatedAt: Date
  /** Lower-cased. */
  email: string
  /** What the password hasher wrote, such as `$argon2id$…`; a marker that begins with `!` where nobody knows a password. */
  hashedPassword: string
  /** True: an administrator. */
  isAdmin: boolean
  /** The last login; null: never. */
  lastLoginAt: Date | null
  /** The name the person goes by; null: not known. */
  name: string | null
  /** The secret of the authenticator app, sealed where `mfaSecretKey` is set; null: none. */
  totpSecret: string | null
  /** When the second factor was confirmed; null: it is off. */
  totpEnabledAt: Date | null
  /** The 30-second step of the last accepted TOTP code. */
  totpLastStep: number | null
  /** When the address was proven to belong to the owner; null: never. */
  emailVerifiedAt: Date | null
  /** When the account first became active; null: never. */
  activatedAt: Date | null
  /** Null: the password was generated, nobody knows it. */
  passwordSetAt: Date | null
  /** The host's own fields (`UserStore.hostFields`), all of them; absent where the store has none. */
  fields?: HostFields
}

/** Values of the host's own columns, by the names of `KnexStoreOptions.users.fields`. */
export type HostFields = Readonly<Record<string, unknown>>

/** What a person may do with one of the host's own fields, and who may see it. */
export interface HostFieldRules {
  /** True: signup and `PATCH /me` never write it; your code may. */
  readonly readOnly: boolean
  /** True: it is part of user records on the server, and of no response. */
  readonly private: boolean
}

/** Why a user is inserted, for values that the host adds (`insertDefaults`). */
export interface UserOrigin {
  /** `command`: by code of the host's, or by a command line. */
  readonly by: 'signup' | 'provider' | 'email_login' | 'command'
  /** What the provider says of the person, where `by` is `provider`. */
  readonly profile?: OAuthUser
}

/** An external identity, normalized. */
export interface OAuthUser {
  provider: string
  /** The stable id inside that provider; together with the provider it is the key. The email never is. */
  subject: string
  email: string | null
  /** true: the provider verified it; false: it says not; null: it said nothing. */
  emailVerified: boolean | null
  name: string | null
  picture: string | null
  /** The provider's own payload. Never stored. */
  raw: Record<string, unknown>
}

/** The adapter fills `id` (integer keys are made by the database). `fields` may hold some of the host's fields, or be absent. */
export type NewUser = Omit<UserRecord, 'id'>
/** Of `fields`, those that are named change; the others stay. */
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
  /**
   * The type of the keys. Only `uuid` keys are shown to somebody who signs up and has to activate the account first: others
   * would tell
   * a new account from an address that is taken. Default `uuid`.
   */
  readonly ids?: 'uuid' | 'integer' | 'text'
  /** The host's own fields, by name. Absent: there are none, and no record has `fields`. */
  readonly hostFields?: ReadonlyMap<string, HostFieldRules>
  find(id: string): Promise<UserRecord | null>
  /** `email` must be lower-cased already. */
  findByEmail(email: string): Promise<UserRecord | null>
  /**
   * One INSERT, the host's fields included. Without `origin` the user counts as inserted by `command`.
   * @throws DuplicateRecordError when the address is taken; ValidationError for a value that no column can hold
   */
  insert(user: NewUser, origin?: UserOrigin): Promise<UserRecord>
  /** True when the row was there. @throws DuplicateRecordError when the new address is taken */
  update(id: string, changes: UserChanges): Promise<boolean>
  /** Reads the row and keeps every other unit from changing it until this one ends. */
  lock(id: string): Promise<UserRecord | null>
  /**
   * Stamps `lastLoginAt`, stores a rehash where one is given, and keeps the user's row until the unit ends; `updatedAt`
   * stays. Returns the user as it is then. Null, with nothing changed, unless the user is active and its hash is still,
   * byte for byte, the one that was `seen`: a password changed meanwhile is never overwritten.
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
  /**
   * Deletes at most `most` pending accounts (never activated, never logged in) whose last activation link expired by `before`, each in a
   * transaction of its own, with its identities, tokens, recovery codes and sessions. One that a foreign key holds stays, and is not
   * counted again. Nothing where the table has no `activatedAt`. An adapter may leave it out: then such accounts stay.
   */
  deleteAbandoned?(expired: Expired): Promise<AbandonedAccounts>
}

/** What became of pending accounts that nobody activated. */
export interface AbandonedAccounts {
  readonly deleted: number
  /** A row of another table refers to them. */
  readonly held: number
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

export interface IdentityWithUser {
  identity: IdentityRecord
  user: UserRecord | null
}

export interface IdentityStore {
  /** `user` is null when the account is gone and left its identity behind, which a table without a foreign key allows. */
  findWithUser(provider: string, subject: string): Promise<IdentityWithUser | null>
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

/** At most 18 characters: tables of hosts have a column of that width. */
export type UserTokenPurpose =
  | 'ACTIVATION'
  | 'PASSWORD_RESET'
  | 'EMAIL_VERIFICATION'
  | 'EMAIL_CHANGE'
  | 'MFA_CHALLENGE'
  | 'MFA_ENROLMENT'
  | 'LINK_TICKET'
  | 'REAUTH_TICKET'
  | 'OAUTH_CODE'
  | 'CONTESTED'
  | 'UNDO'

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
   * Supersedes the user's open tokens and returns how many: of the given purposes, or without them of every purpose but `UNDO`,
   * which only an undo ends. Also moves their `expiresAt` to `at` where it is later, which tells them from
   * redeemed ones: `consume` leaves usedAt < expiresAt, this leaves expiresAt <= usedAt.
   */
  consumeAllForUser(userId: string, at: Date, purpose?: UserTokenPurpose | readonly UserTokenPurpose[]): Promise<number>
  /** The user's tokens of one purpose that are neither spent nor expired at `at`, oldest first. */
  listOpen(userId: string, purpose: UserTokenPurpose, at: Date): Promise<UserTokenRecord[]>
  /**
   * True when `consume` ever spent a token of this user and purpose; one that was superseded does not count. Decides who was
   * never activated where the users table has no `activatedAt`.
   */
  wasConsumed(userId: string, purpose: UserTokenPurpose): Promise<boolean>
  /**
   * How many were deleted. Keeps what `wasConsumed` needs where the users table has no `activatedAt`: redeemed activation tokens. With
   * `users.deleteAbandoned`, activation tokens stay for seven days longer, because they tell when a pending account was abandoned.
   */
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

/** One row per living session, however long it lives and however often it is refreshed. */
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
  /** When the person last showed a credential; null: never in a way that counts. */
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
  session: Pick<SessionRecord, 'id' | 'userId' | 'amr' | 'authenticatedAt' | 'isPersistent' | 'expiresAt'>
  user: Pick<UserRecord, 'id' | 'email'>
}

/** What `update` may change: the methods, the last proof of presence, and the token together with its generation. */
export type SessionChanges = Partial<Pick<SessionRecord, 'amr' | 'authenticatedAt'>> &
  (Pick<SessionRecord, 'tokenHash' | 'generation'> | { tokenHash?: never; generation?: never })

/** A session is alive while `revokedAt` is null and `expiresAt` is in the future. */
export interface SessionStore {
  /** @throws DuplicateRecordError when the token's hash is taken */
  insert(session: SessionRecord): Promise<void>
  /**
   * Inserts the session, and ends those living ones of its user that were unused longest (`lastSeenAt`) at its `createdAt`, of both
   * kinds, so that at most `most` are left, the new one among them. Returns how many it ended. For a store that does this in fewer round
   * trips; left out, `listForUser`, `revoke` and `insert` do it.
   * @throws DuplicateRecordError when the token's hash is taken
   */
  insertWithin?(session: SessionRecord, most: number): Promise<number>
  /** The session and its user at one moment, also when the session has ended. Null: no such session, or its user is gone. */
  find(wanted: { id: string } | { tokenHash: string; kind: SessionKind }): Promise<SessionWithUser | null>
  /** Reads a living session inside a transaction and keeps every other one from changing it until this one ends. */
  lock(id: string, at: Date): Promise<SessionRecord | null>
  /**
   * Single use, by one guarded UPDATE: replaces the token of a living session of kind `tokens` whose user is active. Of any
   * number of
   * racers one gets the answer; null, with nothing changed, for everybody else.
   */
  rotate(rotation: Rotation): Promise<Rotated | null>
  /** Changes a session that is not revoked. True when there was one. */
  update(id: string, changes: SessionChanges): Promise<boolean>
  /**
   * Moves `lastSeenAt` and `expiresAt` of a session that is alive at the new `lastSeenAt` and still has the token with this hash, unless it
   * was seen after `seenBy` already. Of any number of racers one gets true.
   */
  touch(id: string, seenBy: Date, slid: Pick<SessionRecord, 'lastSeenAt' | 'expiresAt'>, tokenHash: string): Promise<boolean>
  /** The living sessions of both kinds, oldest first. */
  listForUser(userId: string, at: Date): Promise<SessionRecord[]>
  /**
   * Ends a session by one guarded UPDATE, also an expired one: a request that began earlier may still take it for alive. True
   * when it was
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
