/**
 * Stores accounts and sessions. `createKnexStore` returns one; a host may write its own adapter.
 *
 * Rules for an adapter:
 * - Strings compare byte for byte (case, accents and trailing spaces count).
 * - Instants are exact to the millisecond, in every time zone of process and server.
 * - A method that uses something up is one guarded statement. Of several simultaneous callers, exactly one wins.
 * - A unique violation is a `DuplicateRecordError`. A database that cannot be reached, or stays busy after a few
 *   retries of the whole transaction, is a `ServiceUnavailableError`.
 */
export interface AuthStore {
  readonly users: UserStore
  readonly userTokens: UserTokenStore
  /** Required when `oauthEnabled`. */
  readonly identities?: IdentityStore
  /** Required when `mfaEnabled`. */
  readonly recoveryCodes?: RecoveryCodeStore
  /** Required when `passkeysEnabled`. */
  readonly passkeys?: PasskeyStore
  /** If absent, refresh tokens are stateless and work until they expire, and there are no server-side sessions (docs/sessions.md). */
  readonly sessions?: SessionStore
  /** Required when `emailLogin` is on. If absent, no mailed code can confirm a session either. */
  readonly emailLogins?: EmailLoginStore
  /**
   * Runs `work` in one transaction, or joins the open one. Runs at READ COMMITTED. After a deadlock or a serialization
   * failure it runs again from the start, a few times.
   */
  transaction<T>(work: (store: AuthStore) => Promise<T>, options?: UnitOptions): Promise<T>
  /**
   * Runs `effect` after the host commits, and never if it rolls back. Exists only on a store inside the host's own
   * transaction, and on transactions that join it. Optional: without it the effect runs when our part ends.
   */
  afterCommit?(effect: () => void): void
  /**
   * Checks whether the store works. `createAuthRouter` calls it at its start, and refuses requests while there is an `error`.
   * Optional: without it nothing is checked.
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
  /** As the database has it. Null: the fault concerns the table, or several columns. */
  readonly column: string | null
  /** What is wrong, what follows from it, and how to fix it. Contains no value of a row. */
  readonly message: string
  /** The statement that fixes it. Null: there is none, or an option fixes it. */
  readonly sql: string | null
}

export interface UnitOptions {
  /**
   * Milliseconds from the call. A transaction that takes longer, with its retries, is rolled back and rejects with a
   * `ServiceUnavailableError`. Its connection returns to the pool, and later calls inside this transaction do not reach the
   * database. A transaction that joined another has the deadline of that one.
   */
  readonly deadlineMs?: number
}

/** A store that has every optional table. */
export interface CompleteStore extends Required<Omit<AuthStore, 'afterCommit' | 'check'>>, Pick<AuthStore, 'afterCommit'> {}

export interface UserRecord {
  /** Always a string, also if the database has integer keys. New rows of our own tables get a UUID v4. */
  id: string
  /** False: deactivated, or never activated (`activatedAt` null). */
  isActive: boolean
  /** When the account was made. */
  createdAt: Date
  /** When the row last changed. */
  updatedAt: Date
  /** Lower-cased. */
  email: string
  /** The password hasher's output, such as `$argon2id$…`, or a marker that begins with `!` if nobody knows a password. */
  hashedPassword: string
  /** True: an administrator. */
  isAdmin: boolean
  /** The last login. Null: never. */
  lastLoginAt: Date | null
  /** The person's name. Null: unknown. */
  name: string | null
  /** The secret of the authenticator app, encrypted if `mfaSecretKey` is set. Null: none. */
  totpSecret: string | null
  /** When the second factor was confirmed; null: it is off. */
  totpEnabledAt: Date | null
  /** The 30-second step of the last accepted TOTP code. */
  totpLastStep: number | null
  /** When the owner verified the address. Null: never. */
  emailVerifiedAt: Date | null
  /** When the account first became active; null: never. */
  activatedAt: Date | null
  /** Null: the password was generated, nobody knows it. */
  passwordSetAt: Date | null
  /** All of the host's own fields (`UserStore.hostFields`). Absent if the store has none. */
  fields?: HostFields
}

/** Values of the host's own columns, by the names of `KnexStoreOptions.users.fields`. */
export type HostFields = Readonly<Record<string, unknown>>

/** What a person may do with one of the host's own fields, and who may see it. */
export interface HostFieldRules {
  /** True: sign-up and `PATCH /me` never write it; your code may. */
  readonly readOnly: boolean
  /** True: user records on the server contain it, and no response does. */
  readonly private: boolean
  /** Strings and numbers of a file are converted to false and true. Absent: values are not converted. */
  readonly type?: 'boolean'
}

/** Why a user is inserted, for values that the host adds (`insertDefaults`). */
export interface UserOrigin {
  /** `command`: by code of the host's, or by a command line. */
  readonly by: 'signup' | 'provider' | 'email_login' | 'command'
  /** The provider's profile of the person, if `by` is `provider`. */
  readonly profile?: OAuthUser
}

/** An external identity, normalized. */
export interface OAuthUser {
  provider: string
  /** The stable id inside that provider. Provider and subject are the key; the email is not. */
  subject: string
  email: string | null
  /** True: the provider verified it. False: it did not. Null: it does not say. */
  emailVerified: boolean | null
  name: string | null
  picture: string | null
  /** The provider's own payload. Never stored. */
  raw: Record<string, unknown>
}

/** The adapter fills `id` (integer keys are made by the database). `fields` may hold some of the host's fields, or be absent. */
export type NewUser = Omit<UserRecord, 'id'>
/** Of the host's own fields, only those in `fields` change. */
export type UserChanges = Partial<Omit<UserRecord, 'id' | 'createdAt'>>

/** The fields that a list can filter by; never a secret. Of `totpEnabledAt`, only whether it is null. */
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
 * One condition. Only `isnull` matches a null field. Strings compare byte for byte, also in order; only `icontains`
 * ignores the case of A to Z. No character of a value is a wildcard. `id` supports `eq`, `ne`, `in`, `not_in` and
 * `isnull`. Booleans have no order.
 */
export type UserFilter = { readonly field: FilterableUserField } & (
  | { readonly operator: 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte'; readonly value: UserFilterValue }
  | { readonly operator: 'in' | 'not_in'; readonly value: readonly UserFilterValue[] }
  /** Includes both ends. */
  | { readonly operator: 'between'; readonly value: readonly [UserFilterValue, UserFilterValue] }
  | { readonly operator: 'isnull'; readonly value: boolean }
  | { readonly operator: 'contains' | 'icontains' | 'startswith' | 'endswith'; readonly value: string }
)

export interface UserListing {
  /** All of them must match. */
  filters: readonly UserFilter[]
  /** `next` of the page before; null: from the start. */
  after: string | null
  /** The maximum number. */
  limit: number
}

export interface UserPage {
  users: UserRecord[]
  /** Where the next page begins, in a form of the adapter's choice. Null: there is none. */
  next: string | null
}

export interface UserStore {
  /** The fields that exist in the host's table. Boot checks read it. */
  readonly fields: ReadonlySet<keyof UserRecord>
  /**
   * The type of the keys. Default `uuid`. A sign-up that needs an activation returns only `uuid` keys, because others would
   * distinguish a new account from a taken address.
   */
  readonly ids?: 'uuid' | 'integer' | 'text'
  /** The host's own fields, by name. If absent, no record has `fields`. */
  readonly hostFields?: ReadonlyMap<string, HostFieldRules>
  find(id: string): Promise<UserRecord | null>
  /** `email` must be in lower case. */
  findByEmail(email: string): Promise<UserRecord | null>
  /**
   * Inserts the user with the host's fields, by one INSERT. Without `origin` the user counts as inserted by `command`.
   * @throws DuplicateRecordError when the address is taken; ValidationError for a value that no column can hold
   */
  insert(user: NewUser, origin?: UserOrigin): Promise<UserRecord>
  /** Returns true if the row exists. @throws DuplicateRecordError when the new address is taken */
  update(id: string, changes: UserChanges): Promise<boolean>
  /** Reads the row and locks it until the transaction ends. */
  lock(id: string): Promise<UserRecord | null>
  /**
   * Sets `lastLoginAt`, stores a rehash if there is one, and locks the user's row until the transaction ends. `updatedAt`
   * does not change. Returns the updated user. Returns null, with nothing changed, unless the user is active and its hash
   * still equals `seen`, byte for byte. So a password that was changed meanwhile is never overwritten.
   */
  recordLogin(seen: { id: string; hashedPassword: string }, at: Date, changes?: { hashedPassword?: string }): Promise<UserRecord | null>
  /** Single use: returns true if `step` is later than every accepted step, and stores it. */
  advanceTotpStep(id: string, step: number): Promise<boolean>
  /**
   * Lists users by `createdAt`, then by id, oldest first. A page continues where the last one ended, even if rows were
   * inserted or deleted meanwhile. Every page costs the same.
   */
  list(listing: UserListing): Promise<UserPage>
  /**
   * Locks the active administrators until the transaction ends, and returns them in the order of their ids. Omits accounts
   * that ceased to be administrators while it waited. Returns none if the table has no `isAdmin`.
   */
  lockAdmins(): Promise<UserRecord[]>
  /**
   * Deletes at most `most` pending accounts (never activated, never logged in) whose last activation link expired by `before`. Each
   * one has its own transaction, which also deletes its identities, tokens, recovery codes and sessions. An account stays if a
   * foreign key refers to it, and is not counted again. Deletes nothing if the table has no `activatedAt`. Optional: without it
   * such accounts stay.
   */
  deleteAbandoned?(expired: Expired): Promise<AbandonedAccounts>
}

/** The result of deleting pending accounts. */
export interface AbandonedAccounts {
  readonly deleted: number
  /** Kept, because a row of another table refers to them. */
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
  /** `user` is null if the account was deleted without its identity, which a table without a foreign key allows. */
  findWithUser(provider: string, subject: string): Promise<IdentityWithUser | null>
  /** Oldest first. */
  listForUser(userId: string): Promise<IdentityRecord[]>
  /** @throws DuplicateRecordError when the identity is linked already, or the user has one of this provider */
  insert(identity: NewIdentity): Promise<IdentityRecord>
  /**
   * Sets `lastLoginAt` of the identity and its user, and locks the user's row until the transaction ends.
   * Returns null, with nothing changed, unless the link still exists and the user is active.
   */
  recordLogin(link: { userId: string; provider: string; subject: string }, at: Date): Promise<UserRecord | null>
  /** Removes the identities of one provider, or all. Returns how many. */
  deleteForUser(userId: string, provider?: string): Promise<number>
}

/** At most 18 characters, because tables of hosts have a column of that width. */
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
  | 'KNOWN_DEVICES'
  | 'PASSKEY_CHALLENGE'
  | 'UNDO'

export interface UserTokenRecord {
  id: string
  userId: string
  /** SHA-256 of the plaintext, hexadecimal; the plaintext is never stored. */
  tokenHash: string
  purpose: UserTokenPurpose
  /** Data of the token, for example the new address. */
  payload: string | null
  expiresAt: Date
  usedAt: Date | null
  createdAt: Date
}

/** Which rows `purgeExpired` deletes. */
export interface Expired {
  /** Rows that ended at this time, or earlier. */
  before: Date
  /** The maximum number in one statement. */
  most: number
}

export interface UserTokenStore {
  /** @throws DuplicateRecordError when the hash exists already */
  insert(token: Omit<UserTokenRecord, 'id'>): Promise<UserTokenRecord>
  /** Finds a token of any purpose, also an expired or used one. */
  find(tokenHash: string): Promise<UserTokenRecord | null>
  /** Single use: returns the record to the one caller who uses it. Null if it is unknown, of another purpose, expired or used. */
  consume(tokenHash: string, purpose: UserTokenPurpose, at: Date): Promise<UserTokenRecord | null>
  /**
   * Supersedes the user's open tokens and returns how many. Without purposes it covers all except `UNDO`, because only an undo
   * invalidates those. Also moves their `expiresAt` to `at` if it is later, to distinguish them from redeemed tokens:
   * `consume` leaves usedAt < expiresAt, this leaves expiresAt <= usedAt.
   */
  consumeAllForUser(userId: string, at: Date, purpose?: UserTokenPurpose | readonly UserTokenPurpose[]): Promise<number>
  /** Lists the user's tokens of one purpose that are neither used nor expired at `at`, oldest first. */
  listOpen(userId: string, purpose: UserTokenPurpose, at: Date): Promise<UserTokenRecord[]>
  /**
   * Returns true if `consume` ever used a token of this user and purpose; a superseded token does not count. Without
   * `activatedAt` in the users table, this decides which accounts were never activated.
   */
  wasConsumed(userId: string, purpose: UserTokenPurpose): Promise<boolean>
  /**
   * Deletes expired tokens and returns how many. If the users table has no `activatedAt`, it keeps redeemed activation tokens,
   * because `wasConsumed` needs them. With `users.deleteAbandoned`, activation tokens stay seven days longer, because they say
   * when a pending account was abandoned.
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
  /** Replaces the user's set of codes. */
  replaceForUser(userId: string, codeHashes: readonly string[]): Promise<void>
  /** Single use: returns true to the one caller who uses it. */
  consume(userId: string, codeHash: string, at: Date): Promise<boolean>
  deleteForUser(userId: string): Promise<number>
}

/** A WebAuthn credential, made by an authenticator for one account. Bytes are in base64url. */
export interface PasskeyRecord {
  id: string
  userId: string
  /** 32 random-looking bytes, by which authenticators distinguish accounts. */
  userHandle: string
  /** Unique across all accounts; up to 512 bytes. */
  credentialId: string
  /** A COSE_Key (RFC 9052 section 7). */
  publicKey: string
  /** The signature counter of the last use, up to 4,294,967,295; 0 for authenticators without one. */
  signCount: number
  /** How browsers reach it, space separated: `internal`, `hybrid`, `usb` and so on. */
  transports: string
  /** True: it may be copied to other devices of its owner. */
  isBackupEligible: boolean
  isBackedUp: boolean
  /** The model of the authenticator, a UUID; zeros if unknown. */
  aaguid: string
  /** The owner's name for it. Null: none. */
  name: string | null
  createdAt: Date
  /** Null: never used. */
  lastUsedAt: Date | null
}

export type NewPasskey = Omit<PasskeyRecord, 'id'>

export interface PasskeyWithUser {
  passkey: PasskeyRecord
  user: UserRecord | null
}

/** One use of a passkey with a valid signature. */
export interface PasskeyUse {
  id: string
  userId: string
  /** The counter that the row had when the signature was checked. */
  seenCount: number
  signCount: number
  isBackedUp: boolean
  at: Date
}

export interface PasskeyStore {
  /** `user` is null if the account was deleted without its passkey, which a table without a foreign key allows. */
  findWithUser(credentialId: string): Promise<PasskeyWithUser | null>
  /** Oldest first. */
  listForUser(userId: string): Promise<PasskeyRecord[]>
  /** @throws DuplicateRecordError when any account has registered the credential */
  insert(passkey: NewPasskey): Promise<PasskeyRecord>
  /**
   * Writes the new counter, `isBackedUp` and `lastUsedAt`, by one guarded UPDATE. Returns false, with nothing changed, unless the
   * passkey still belongs to this account and its counter equals `seenCount`.
   */
  recordUse(use: PasskeyUse): Promise<boolean>
  /**
   * Records a login with the passkey. Does what `recordUse` does, sets the user's `lastLoginAt`, inserts the token `spent`, and locks the
   * user's row until the transaction ends. Returns null, with nothing changed, unless the passkey is unchanged and the user is active.
   * @throws DuplicateRecordError when the hash of `spent` exists already
   */
  recordLogin(use: PasskeyUse, spent: Omit<UserTokenRecord, 'id'>): Promise<UserRecord | null>
  /** Returns true if this account has the passkey. */
  rename(id: string, userId: string, name: string): Promise<boolean>
  /** Removes one passkey, or all of the account. Returns how many. */
  deleteForUser(userId: string, id?: string): Promise<number>
  /** Returns false if the table does not exist, or if its rows cannot be read and deleted. Called only while `passkeysEnabled` is off. Absent: true. */
  isPresent?(): Promise<boolean>
}

/** `tokens`: access and refresh tokens. `session`: a cookie of a server-side session. */
export type SessionKind = 'tokens' | 'session'

/** One row per session. A refresh changes the row in place. */
export interface SessionRecord {
  /** A UUID v4 that doorward generates. Identifies the session in lists and in access tokens (`sid`); gives access to nothing. */
  id: string
  userId: string
  kind: SessionKind
  /** SHA-256 of the only refresh token or session cookie that is valid now, hexadecimal; unique. */
  tokenHash: string
  /** The number of rotations. */
  generation: number
  /** The last rotation. Null: never rotated. The grace period counts from it. */
  rotatedAt: Date | null
  /** The methods of the login, space separated. */
  amr: string
  /** When the person last showed a credential. Null: never. */
  authenticatedAt: Date | null
  /** False: the browser drops the cookies when it closes. */
  isPersistent: boolean
  ip: string | null
  userAgent: string | null
  /** The registration key of the provider that opened the session. */
  provider: string | null
  /** `sid` of that provider's id_token. */
  providerSid: string | null
  createdAt: Date
  lastSeenAt: Date
  /** When it expires if it is not used again. Never later than `endsAt`. */
  expiresAt: Date
  /** When it expires in any case. Never changes. */
  endsAt: Date
  /** Null while the session is live. */
  revokedAt: Date | null
}

export interface SessionWithUser {
  session: SessionRecord
  user: UserRecord
}

/** The replacement of the valid token of a session of kind `tokens`. */
export interface Rotation {
  /** The hash of the token to replace. */
  tokenHash: string
  successorHash: string
  /** The generation of the new token. */
  generation: number
  /** The new expiry, limited to the session's `endsAt`. */
  expiresAt: Date
  at: Date
}

/** The data of the new pair. The user's secrets are not read. */
export interface Rotated {
  session: Pick<SessionRecord, 'id' | 'userId' | 'amr' | 'authenticatedAt' | 'isPersistent' | 'expiresAt'>
  user: Pick<UserRecord, 'id' | 'email'>
}

/** What `update` may change: the methods, the time of the last credential, and the token together with its generation. */
export type SessionChanges = Partial<Pick<SessionRecord, 'amr' | 'authenticatedAt'>> &
  (Pick<SessionRecord, 'tokenHash' | 'generation'> | { tokenHash?: never; generation?: never })

/** A session is live while `revokedAt` is null and `expiresAt` is in the future. */
export interface SessionStore {
  /** @throws DuplicateRecordError when the token's hash is taken */
  insert(session: SessionRecord): Promise<void>
  /**
   * Inserts the session, and revokes sessions of its user so that at most `most` are live, with the new one. It revokes those that
   * were unused longest (`lastSeenAt`) at its `createdAt`, of both kinds. Returns how many it revoked. Optional, for fewer round
   * trips: without it doorward calls `listForUser`, `revoke` and `insert`.
   * @throws DuplicateRecordError when the token's hash is taken
   */
  insertWithin?(session: SessionRecord, most: number): Promise<number>
  /** Reads the session and its user at one moment, also a revoked or expired session. Null: no such session, or its user was deleted. */
  find(wanted: { id: string } | { tokenHash: string; kind: SessionKind }): Promise<SessionWithUser | null>
  /** Reads a live session and locks its row until the transaction ends. */
  lock(id: string, at: Date): Promise<SessionRecord | null>
  /**
   * Single use, by one guarded UPDATE: replaces the token of a live session of kind `tokens` whose user is active. Of several
   * simultaneous callers one gets the result. The others get null, with nothing changed.
   */
  rotate(rotation: Rotation): Promise<Rotated | null>
  /** Changes a session that is not revoked. Returns true if there was one. */
  update(id: string, changes: SessionChanges): Promise<boolean>
  /**
   * Moves `lastSeenAt` and `expiresAt` of a session that is live at the new `lastSeenAt` and still has the token with this hash. Does
   * nothing if it was already seen after `seenBy`. Of several simultaneous callers one gets true.
   */
  touch(id: string, seenBy: Date, slid: Pick<SessionRecord, 'lastSeenAt' | 'expiresAt'>, tokenHash: string): Promise<boolean>
  /** Lists the live sessions of both kinds, oldest first. */
  listForUser(userId: string, at: Date): Promise<SessionRecord[]>
  /**
   * Revokes a session by one guarded UPDATE, also an expired one, because a request that began earlier may still treat it as
   * live. Returns true if it was not revoked before, and has the given user and kind.
   */
  revoke(wanted: { id: string; userId?: string; kind?: SessionKind }, at: Date): Promise<boolean>
  /** Revokes all sessions of the user, of both kinds, except one. Returns how many were not revoked before. */
  revokeForUser(userId: string, at: Date, options?: { exceptId?: string }): Promise<number>
  /** Deletes sessions that were revoked or expired by `before`. Returns how many. */
  deleteExpired(expired: Expired): Promise<number>
}

/** One mail whose link or code signs a person in, or whose code confirms a session. */
export interface EmailLoginRecord {
  /** A UUID v4 that doorward generates before the insert. Gives access to nothing. */
  id: string
  /** In lower case. The address need not have an account. */
  email: string
  /** SHA-256 of the link's token, hexadecimal; unique. Null: the mail has no link. */
  tokenHash: string | null
  /** HMAC of the code under a key derived from `jwtSecret`, hexadecimal. Null: the mail has no code. */
  codeHash: string | null
  /** The number of tries of the code. */
  tries: number
  /** Where the browser that sent the request goes after the login. */
  returnTo: string | null
  /** The IP address of the browser that sent the request. */
  ip: string | null
  userAgent: string | null
  createdAt: Date
  expiresAt: Date
  /** When it was used, or replaced by a newer one. */
  usedAt: Date | null
  /** The session that the code confirms. Null: it opens a new one. */
  sessionId: string | null
  /** Requested by a known device, so requests of other clients never replace it. */
  isKnownDevice: boolean
}

/** A row is open while `usedAt` is null and `expiresAt` is in the future. */
export interface EmailLoginStore {
  /** @throws DuplicateRecordError when the token's hash exists already; ValidationError for a value that no column can hold */
  insert(login: EmailLoginRecord): Promise<void>
  /** Also finds a used or expired row. */
  find(wanted: { id: string } | { tokenHash: string }): Promise<EmailLoginRecord | null>
  /**
   * Counts one try of a code before it is compared, by one guarded UPDATE. Returns the row with the new count. Returns null, with
   * nothing changed, if it is unknown, used, expired, or was tried `most` times. At most `most` simultaneous callers get the row.
   */
  countTry(id: string, most: number, at: Date): Promise<EmailLoginRecord | null>
  /** Single use: returns true to the one caller who uses an open row. */
  consume(id: string, at: Date): Promise<boolean>
  /** Lists the open rows of an address, oldest first. */
  listOpen(email: string, at: Date): Promise<EmailLoginRecord[]>
  /** Uses up every unused row of an address, and returns how many. */
  consumeAllForEmail(email: string, at: Date): Promise<number>
  /** Deletes rows that had expired by `before`. Returns how many. */
  deleteExpired(expired: Expired): Promise<number>
}

const isDuplicateRecord = Symbol.for('doorward.duplicate-record.v1')

/** A unique constraint refused the row. On PostgreSQL its transaction cannot continue: decide again in a new one. */
export class DuplicateRecordError extends Error {
  override readonly name = 'DuplicateRecordError'

  /** Also true for an error of another copy of the package in the same process. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && isDuplicateRecord in value
  }

  get [isDuplicateRecord](): true {
    return true
  }
}
