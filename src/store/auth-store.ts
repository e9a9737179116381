/**
 * Stores accounts and sessions. `createKnexStore` returns an `AuthStore`. A host may write its own adapter.
 *
 * Rules for an adapter:
 * - Strings compare byte for byte (case, accents and trailing spaces count).
 * - Instants are exact to the millisecond, in every time zone of process and server.
 * - A method that uses a token, code or link is one guarded statement: its WHERE clause checks that the row is still unused. If several
 *   callers use one token at once, exactly one caller wins.
 * - A unique violation throws `DuplicateRecordError`.
 * - If the database cannot be reached, the store throws `ServiceUnavailableError`. The store throws the same error if the database is still
 *   busy after a few retries of the whole transaction.
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
  /**
   * If absent, refresh tokens are stateless and work until they expire. Server-side sessions then do not exist
   * (docs/sessions.md).
   */
  readonly sessions?: SessionStore
  /** Required when `emailLogin` is on. If absent, mailed codes cannot confirm a session. */
  readonly emailLogins?: EmailLoginStore
  /** Required when `trustedDeviceDays` is not 0. */
  readonly trustedDevices?: TrustedDeviceStore
  /** Required when `invitationsEnabled`. */
  readonly invitations?: InvitationStore
  /** Required when `invitationsEnabled`. */
  readonly invitationUses?: InvitationUseStore
  /** Required for the option `outbox`. */
  readonly outbox?: OutboxStore
  /** Required for the purge that runs by itself. */
  readonly leases?: LeaseStore
  /**
   * Runs `work` in one transaction at READ COMMITTED. If a transaction is open, `work` joins that transaction. After a deadlock
   * or a serialization failure the store runs `work` again from the start, a few times.
   */
  transaction<T>(work: (store: AuthStore) => Promise<T>, options?: UnitOptions): Promise<T>
  /**
   * Runs `effect` after the host commits its transaction. If the host rolls back, `effect` never runs. Exists only on a store inside the
   * host's own transaction, and on stores of transactions that join that transaction. Optional: without `afterCommit`, doorward runs the
   * effect as soon as its own method has finished.
   */
  afterCommit?(effect: () => void): void
  /**
   * Checks whether the store works. `createAuthRouter` calls `check` at its start. While there is a finding of level `error`, the
   * router refuses requests. Optional: without `check`, doorward does not check the store.
   */
  check?(): Promise<TableFinding[]>
}

/** A fault of a table, as `checkTables` finds it. */
export interface TableFinding {
  /** The name of the fault for the option `ignore`, for example `users.email:unique`. Starts with the name of the table's option. */
  readonly key: string
  /** `error`: the store refuses every call. `warning`: single operations fail, or are slow or not strict. */
  readonly level: 'error' | 'warning'
  /** The table's name in the database. */
  readonly table: string
  /** The column's name in the database, or the names of several columns: `provider, subject`. Null: the fault concerns the table. */
  readonly column: string | null
  /** What is wrong, what follows from it, and how to fix it. Contains no value of a row. */
  readonly message: string
  /** What fails, as a sentence, for example `Sign-up without a name fails.` `auth.doctor()` shows it for a `warning`. */
  readonly fails?: string
  /** The statement that fixes the fault. Null: no statement can fix the fault, or an option fixes it. */
  readonly sql: string | null
}

export interface UnitOptions {
  /**
   * The time limit in milliseconds, counted from the call and including all retries. After the deadline the store rolls the transaction
   * back, and the call rejects with a `ServiceUnavailableError`. The connection returns to the pool. Later calls inside this transaction do
   * not reach the database. A transaction that joins an open transaction has the deadline of the open transaction.
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
  /** The password hasher's output, such as `$argon2id$…`. A marker that begins with `!` if the account has no usable password. */
  hashedPassword: string
  /** True: an administrator. */
  isAdmin: boolean
  /** The last login. Null: never. */
  lastLoginAt: Date | null
  /** The person's name. Null: unknown. */
  name: string | null
  /** The secret of the authenticator app, encrypted if `mfaSecretKey` is set. Null: none. */
  totpSecret: string | null
  /** When the person confirmed the second factor. Null: the second factor is off. */
  totpEnabledAt: Date | null
  /** The 30-second step of the last accepted TOTP code. */
  totpLastStep: number | null
  /** When the owner verified the address. Null: never. */
  emailVerifiedAt: Date | null
  /** When the account first became active. Null: never. */
  activatedAt: Date | null
  /** When the person set the password. Null: doorward generated the password, so nobody knows it. */
  passwordSetAt: Date | null
  /** When somebody asked for a new password. Null or absent: the password has not expired. */
  passwordExpiredAt?: Date | null
  /** Since when the account waits for an administrator. Null or absent: it does not wait. */
  approvalRequestedAt?: Date | null
  /** Since when the account waits for its deletion. Null or absent: it does not wait. */
  deletionRequestedAt?: Date | null
  /** All of the host's own fields (`UserStore.hostFields`). Absent if the store has none. */
  fields?: HostFields
}

/** Values of the host's own columns, by the names of `KnexStoreOptions.users.fields`. */
export type HostFields = Readonly<Record<string, unknown>>

/** What a person may do with one of the host's own fields, and who may see it. */
export interface HostFieldRules {
  /** True: only your code writes the field. Sign-up and `PATCH /me` never write it. */
  readonly readOnly: boolean
  /** True: user records on the server contain the field, but responses omit it. */
  readonly private: boolean
  /** An import converts the strings and numbers of its file to false and true. Absent: values are not converted. */
  readonly type?: 'boolean'
}

/** Why a user is inserted. The host's function `insertDefaults` gets this reason. */
export interface UserOrigin {
  /** `command`: the host's own code or a command line inserts the user. */
  readonly by: 'signup' | 'provider' | 'email_login' | 'command'
  /** The provider's profile of the person, if `by` is `provider`. */
  readonly profile?: OAuthUser
}

/** An external identity, normalized. */
export interface OAuthUser {
  provider: string
  /** The person's stable id at the provider. Provider and subject together are the key. The email is not part of the key. */
  subject: string
  email: string | null
  /** True: the provider verified the email address. False: the provider did not. Null: the provider does not say. */
  emailVerified: boolean | null
  name: string | null
  picture: string | null
  /** `sid` of the verified id_token. Absent: the provider sent none. */
  sid?: string
  /** The provider's own payload. Never stored. */
  raw: Record<string, unknown>
}

/**
 * A user to insert. `id` is absent, because the adapter makes it, or the database does (integer keys). `fields` may contain some of the
 * host's fields, or be absent.
 */
export type NewUser = Omit<UserRecord, 'id'>
/** The changes of a user. A field that is absent does not change. If `fields` has only some host fields, the other host fields stay. */
export type UserChanges = Partial<Omit<UserRecord, 'id' | 'createdAt'>>

/** The fields that a list can filter by. No secret is among them. For `totpEnabledAt`, a filter can only ask whether it is null. */
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
  | 'approvalRequestedAt'
  | 'totpEnabledAt'

/** A string for `id`, `email` and `name`. A boolean or a Date for the other fields. */
export type UserFilterValue = string | boolean | Date

/**
 * One condition. Only `isnull` matches a null field. Strings compare and sort byte for byte. Exception: `icontains` ignores the case of A
 * to Z. No character of a value is a wildcard. `id` and booleans support only `eq`, `ne`, `in`, `not_in` and `isnull`.
 */
export type UserFilter = { readonly field: FilterableUserField } & (
  | { readonly operator: 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte'; readonly value: UserFilterValue }
  | { readonly operator: 'in' | 'not_in'; readonly value: readonly UserFilterValue[] }
  /** The range includes its first and its last value. */
  | { readonly operator: 'between'; readonly value: readonly [UserFilterValue, UserFilterValue] }
  | { readonly operator: 'isnull'; readonly value: boolean }
  | { readonly operator: 'contains' | 'icontains' | 'startswith' | 'endswith'; readonly value: string }
)

export interface UserListing {
  /** A listed user matches every filter. */
  filters: readonly UserFilter[]
  /** `next` of the previous page. Null: start with the first page. */
  after: string | null
  /** The maximum number of users. */
  limit: number
}

export interface UserPage {
  users: UserRecord[]
  /** Where the next page begins. The adapter chooses the form of the text. Null: this is the last page. */
  next: string | null
}

export interface UserStore {
  /** The fields that exist in the host's table. The checks at boot read this set. */
  readonly fields: ReadonlySet<keyof UserRecord>
  /**
   * The type of the keys. Default `uuid`. If a sign-up needs an activation, the response contains the key of the account only if the keys
   * are UUIDs. Other keys would show whether the address already had an account.
   */
  readonly ids?: 'uuid' | 'integer' | 'text'
  /** The host's own fields, by name. If absent, no record has `fields`. */
  readonly hostFields?: ReadonlyMap<string, HostFieldRules>
  find(id: string): Promise<UserRecord | null>
  /** `email` must be in lower case. */
  findByEmail(email: string): Promise<UserRecord | null>
  /**
   * Inserts the user with the host's fields, by one INSERT. The default of `origin` is `{ by: 'command' }`.
   * @throws DuplicateRecordError when the address is taken; ValidationError for a value that no column can hold
   */
  insert(user: NewUser, origin?: UserOrigin): Promise<UserRecord>
  /** Returns true if the row exists. @throws DuplicateRecordError when the new address is taken */
  update(id: string, changes: UserChanges): Promise<boolean>
  /** Reads the row and locks it until the transaction ends. */
  lock(id: string): Promise<UserRecord | null>
  /**
   * Sets `lastLoginAt`, and the new hash if `changes` has one. Locks the user's row until the transaction ends. `updatedAt`
   * does not change. Returns the updated user. If the user is not active, the method changes nothing and returns null. The
   * stored hash must equal the hash in `seen`, byte for byte. Otherwise the method also changes nothing and returns null. So a
   * login never overwrites a password that was changed meanwhile.
   */
  recordLogin(seen: { id: string; hashedPassword: string }, at: Date, changes?: { hashedPassword?: string }): Promise<UserRecord | null>
  /** If `step` is later than every accepted step, stores `step` and returns true. So each TOTP code works once. */
  advanceTotpStep(id: string, step: number): Promise<boolean>
  /**
   * Lists users by `createdAt`, then by id, oldest first. A page continues where the previous page ended, even if rows were inserted or
   * deleted meanwhile. A late page costs the database no more than the first page.
   */
  list(listing: UserListing): Promise<UserPage>
  /**
   * Locks the active administrators until the transaction ends, and returns them in the order of their ids. If an account stopped
   * being an administrator while the method waited, the method omits that account. If the table has no `isAdmin`, returns an
   * empty list.
   */
  lockAdmins(): Promise<UserRecord[]>
  /**
   * Deletes at most `most` pending accounts (never activated, never logged in) whose last activation link expired at `before` or earlier. A
   * used link counts too, because a used link that never expires keeps an imported account.
   * A transaction deletes an account with its identities, tokens, recovery codes and sessions. If a foreign key refers to an account, the
   * account stays, the others are deleted, and a later call does not count it again. But an open activation token that names an invitation
   * stays too, because a later link needs it. If the table has no `activatedAt`, deletes nothing.
   * Optional: without `deleteAbandoned`, pending accounts stay.
   */
  deleteAbandoned?(expired: Expired): Promise<AbandonedAccounts>
  /**
   * Deletes an account with all its rows: identities, tokens, recovery codes, passkeys, sessions, trusted devices, uses of invitations, and
   * the email logins of its tokens and addresses. Its invitations lose the administrator who made them, and invitations for an address of
   * `invited` are revoked and lose the address. Rows of the outbox stay. Returns false, and changes nothing, if there is no such account.
   * Optional, but required when `accountDeletion` is not `off`.
   * @throws ReferencedRecordError if a row of another table refers to the account
   */
  delete?(deletion: UserDeletion): Promise<boolean>
  /**
   * Lists accounts that are not active and asked for their deletion at `by` or earlier, the longest waiting first, then by id. Required when
   * `accountDeletion` is `soft`.
   */
  listDeletions?(due: DueDeletions): Promise<UserRecord[]>
}

export interface UserDeletion {
  readonly id: string
  /** In lower case. Their email logins are deleted. */
  readonly addresses: readonly string[]
  /** In lower case. Invitations for them are revoked and lose the address. */
  readonly invited: readonly string[]
  readonly at: Date
  /** Deletes only an account that is not active and asked for its deletion at this time or earlier. */
  readonly requestedBy?: Date
}

export interface DueDeletions {
  readonly by: Date
  /** The last account of the previous page. Null: the first page. */
  readonly after: Pick<UserRecord, 'id' | 'deletionRequestedAt'> | null
  /** The maximum number of accounts. */
  readonly most: number
}

/** The result of deleting pending accounts. */
export interface AbandonedAccounts {
  readonly deleted: number
  /** The number of accounts that stay, because a row of another table refers to them. */
  readonly held: number
}

export interface IdentityRecord {
  id: string
  userId: string
  /** The name of the provider in the option `providers`. */
  provider: string
  /** The person's stable id at the provider. (provider, subject) is unique. (userId, provider) is unique too. */
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
  /** `user` is null if the account was deleted without its identity. Only a table without a foreign key allows that. */
  findWithUser(provider: string, subject: string): Promise<IdentityWithUser | null>
  /** Oldest first. */
  listForUser(userId: string): Promise<IdentityRecord[]>
  /** @throws DuplicateRecordError when the identity is linked already, or the user already has an identity of this provider */
  insert(identity: NewIdentity): Promise<IdentityRecord>
  /**
   * Sets `lastLoginAt` of the identity and its user, and locks the user's row until the transaction ends.
   * If the link no longer exists, or the user is not active, the method changes nothing and returns null.
   */
  recordLogin(link: { userId: string; provider: string; subject: string }, at: Date): Promise<UserRecord | null>
  /** Removes the user's identities of one provider. Without `provider`, removes all of the user's identities. Returns how many. */
  deleteForUser(userId: string, provider?: string): Promise<number>
}

/** A value has at most 18 characters, because the column of a host's table may be that narrow. */
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
  | 'LOGIN_TASK'
  | 'LOGIN_TASKS_CUT'
  | 'UNDO'
  | 'ACCOUNT_DELETION'

export interface UserTokenRecord {
  id: string
  userId: string
  /** SHA-256 of the plaintext, hexadecimal. The store never gets the plaintext. */
  tokenHash: string
  purpose: UserTokenPurpose
  /** Data of the token, for example the new address. With `signupWith: ['passkey']`, up to 4,096 characters. */
  payload: string | null
  expiresAt: Date
  usedAt: Date | null
  createdAt: Date
}

/** Which rows `purgeExpired` deletes. */
export interface Expired {
  /** Deletes rows that ended at this time, or earlier. */
  before: Date
  /** The maximum number of rows in one statement. */
  most: number
  /** The state of the run that the batch belongs to. A store may ignore it: then each batch begins with the oldest rows. */
  run?: PurgeRun
}

/** The state of a run, which deletes the expired rows of a table in batches. Every batch gets the same object, and the store may write it. */
export interface PurgeRun {
  /** Where the last batch ended, in a form of the store. The next batch begins there. */
  position?: unknown
  /** True: no row is left. If absent, a batch that deletes fewer than `most` rows ends the run. */
  isOver?: boolean
}

export interface UserTokenStore {
  /** @throws DuplicateRecordError when the hash exists already */
  insert(token: Omit<UserTokenRecord, 'id'>): Promise<UserTokenRecord>
  /** Finds a token of any purpose, also an expired or used one. */
  find(tokenHash: string): Promise<UserTokenRecord | null>
  /**
   * Marks the token as used, and returns its record. If several callers use the token at once, one caller gets the record. The others get
   * null. The method also returns null if the token is unknown, of another purpose, expired or used.
   */
  consume(tokenHash: string, purpose: UserTokenPurpose, at: Date): Promise<UserTokenRecord | null>
  /**
   * Makes the user's open tokens invalid and returns how many. Without `purpose`, the method invalidates tokens of all purposes except
   * `UNDO`, because only an undo invalidates `UNDO` tokens. Sets `usedAt` to `at`. If `expiresAt` is later than `at`, sets `expiresAt` to
   * `at` too. So an invalidated token has expiresAt <= usedAt, and a token that `consume` used has usedAt < expiresAt.
   */
  consumeAllForUser(userId: string, at: Date, purpose?: UserTokenPurpose | readonly UserTokenPurpose[]): Promise<number>
  /** Lists the user's open tokens of one purpose, oldest first. An open token is unused, and expires later than `at`. */
  listOpen(userId: string, purpose: UserTokenPurpose, at: Date): Promise<UserTokenRecord[]>
  /**
   * Returns true if `consume` ever used a token of this user and purpose. A token that `consumeAllForUser` made invalid does not
   * count. If the users table has no `activatedAt`, the result shows whether the account was ever activated.
   */
  wasConsumed(userId: string, purpose: UserTokenPurpose): Promise<boolean>
  /**
   * Deletes expired tokens and returns how many. If the users table has no `activatedAt`, the method keeps used activation tokens,
   * because `wasConsumed` needs them. If `users.deleteAbandoned` exists, activation tokens stay seven days longer, because their
   * expiry shows when a pending account was abandoned. An unused activation token whose payload names an `invitation` stays until its
   * account is deleted: without it, the account would need no invitation any more.
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
  /** Marks the code as used. If several callers use the code at once, one caller gets true. The others get false. */
  consume(userId: string, codeHash: string, at: Date): Promise<boolean>
  deleteForUser(userId: string): Promise<number>
}

/** A WebAuthn credential that an authenticator made for one account. Bytes are in base64url. */
export interface PasskeyRecord {
  id: string
  userId: string
  /** 32 bytes that look random. Authenticators distinguish accounts by these bytes. */
  userHandle: string
  /** Unique across all accounts; up to 512 bytes. */
  credentialId: string
  /** A COSE_Key (RFC 9052 section 7). */
  publicKey: string
  /** The signature counter of the last use, up to 4,294,967,295. If the authenticator has no counter: 0. */
  signCount: number
  /** How browsers reach the authenticator, space separated: `internal`, `hybrid`, `usb` and so on. */
  transports: string
  /** True: the owner may copy the passkey to other devices. */
  isBackupEligible: boolean
  isBackedUp: boolean
  /** The model of the authenticator, a UUID. If the model is unknown, all digits are zero. */
  aaguid: string
  /** The name that the owner gave the passkey. Null: none. */
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
  /** `user` is null if the account was deleted without its passkey. Only a table without a foreign key allows that. */
  findWithUser(credentialId: string): Promise<PasskeyWithUser | null>
  /** Oldest first. */
  listForUser(userId: string): Promise<PasskeyRecord[]>
  /** @throws DuplicateRecordError when any account has registered the credential */
  insert(passkey: NewPasskey): Promise<PasskeyRecord>
  /**
   * Writes the new counter, `isBackedUp` and `lastUsedAt`, by one guarded UPDATE. The passkey must belong to this account, and its
   * counter must equal `seenCount`. Otherwise the method changes nothing and returns false.
   */
  recordUse(use: PasskeyUse): Promise<boolean>
  /**
   * Records a login with the passkey. Does what `recordUse` does, sets the user's `lastLoginAt`, and inserts the token `used`. The row
   * `used` marks the challenge of this login as used. Locks the user's row until the transaction ends. If the passkey was changed, or
   * the user is not active, the method changes nothing and returns null.
   * @throws DuplicateRecordError when the hash of `used` exists already
   */
  recordLogin(use: PasskeyUse, used: Omit<UserTokenRecord, 'id'>): Promise<UserRecord | null>
  /** Returns true if this account has the passkey. */
  rename(id: string, userId: string, name: string): Promise<boolean>
  /** Removes one passkey. Without `id`, removes all passkeys of the account. Returns how many. */
  deleteForUser(userId: string, id?: string): Promise<number>
  /**
   * Returns false if the table does not exist, or if the store cannot read and delete its rows. doorward calls `isPresent` only while
   * `passkeysEnabled` is off. If the adapter has no `isPresent`, doorward assumes true.
   */
  isPresent?(): Promise<boolean>
}

/** `tokens`: access and refresh tokens. `session`: a cookie of a server-side session. */
export type SessionKind = 'tokens' | 'session'

/** One row per session. A refresh changes the row in place. */
export interface SessionRecord {
  /** A UUID v4 that doorward generates. Identifies the session in lists and in access tokens (`sid`). The id itself gives no access. */
  id: string
  userId: string
  kind: SessionKind
  /** SHA-256 of the only refresh token or session cookie that is valid now, hexadecimal. Unique. */
  tokenHash: string
  /** The number of rotations. */
  generation: number
  /** The last rotation. Null: never rotated. The grace period begins at this time. */
  rotatedAt: Date | null
  /** The methods of the login, space separated. */
  amr: string
  /** When the person last used a credential, such as a password or a passkey. Null: never. */
  authenticatedAt: Date | null
  /** False: the browser drops the cookies when it closes. */
  isPersistent: boolean
  ip: string | null
  userAgent: string | null
  /** The name of the provider that opened the session, as in the option `providers`. */
  provider: string | null
  /** `sid` of that provider's id_token. */
  providerSid: string | null
  createdAt: Date
  lastSeenAt: Date
  /** When the session expires if the person does not use it again. Never later than `endsAt`. */
  expiresAt: Date
  /** When the session expires in any case. Never changes. */
  endsAt: Date
  /** Null while the session is live. */
  revokedAt: Date | null
}

export interface SessionWithUser {
  session: SessionRecord
  user: UserRecord
}

/** The new token of a session of kind `tokens`, and the token that it replaces. */
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

/** The data for the new access token and refresh token. The store does not read the user's secrets. */
export interface Rotated {
  session: Pick<SessionRecord, 'id' | 'userId' | 'amr' | 'authenticatedAt' | 'isPersistent' | 'expiresAt'>
  user: Pick<UserRecord, 'id' | 'email'>
}

/** What `update` may change: the login methods, the time of the last credential, and the token together with its generation. */
export type SessionChanges = Partial<Pick<SessionRecord, 'amr' | 'authenticatedAt'>> &
  (Pick<SessionRecord, 'tokenHash' | 'generation'> | { tokenHash?: never; generation?: never })

/** Which sessions of a user `revokeForUser` revokes. An empty choice means all sessions. */
export interface SessionChoice {
  /** The session that stays. */
  readonly exceptId?: string
  /** Only sessions with this login method in `amr`. If the table has no `amr`, every session counts as one of them. */
  readonly amr?: string
  /** Only sessions with exactly this `provider`. If the table has no `provider`, the sessions with `ext` in `amr` count instead. */
  readonly provider?: string
}

/** A session is live while `revokedAt` is null and `expiresAt` is in the future. */
export interface SessionStore {
  /** @throws DuplicateRecordError when the token's hash is taken */
  insert(session: SessionRecord): Promise<void>
  /**
   * Inserts the session. Afterwards the user has at most `most` live sessions. Both kinds and the new session count. If there would be
   * more, the method revokes the sessions that were unused longest (by `lastSeenAt`), and may delete sessions of the user that ended earlier.
   * Returns how many sessions it revoked. The `createdAt` of the new session counts as the current time. Optional, for fewer round trips: without `insertWithin`, doorward calls `listForUser`,
   * `revoke` and `insert`.
   * @throws DuplicateRecordError when the token's hash is taken
   */
  insertWithin?(session: SessionRecord, most: number): Promise<number>
  /**
   * Reads the session and its user at one moment. Also finds a revoked or expired session. Null: the session does not exist, or
   * its user was deleted.
   */
  find(wanted: { id: string } | { tokenHash: string; kind: SessionKind }): Promise<SessionWithUser | null>
  /**
   * Reads the sessions of a list of at most 1,000 ids, like `find`, by one statement and in any order. Optional, for fewer round trips:
   * without `findMany`, doorward calls `find` for each session that a signal of `guards.verify` watches.
   */
  findMany?(ids: readonly string[]): Promise<SessionWithUser[]>
  /** Reads a live session and locks its row until the transaction ends. */
  lock(id: string, at: Date): Promise<SessionRecord | null>
  /**
   * Replaces the token of a live session of kind `tokens`, by one guarded UPDATE. The session's user must be active. If several
   * callers use the token at once, one caller gets the result. The others change nothing and get null.
   */
  rotate(rotation: Rotation): Promise<Rotated | null>
  /** Changes a session that is not revoked. Returns true if there was one. */
  update(id: string, changes: SessionChanges): Promise<boolean>
  /**
   * Sets `lastSeenAt` and `expiresAt` of a session that is live at the new `lastSeenAt` and still has the token with this hash. If the
   * stored `lastSeenAt` is later than `seenBy`, does nothing. If several callers touch the session at once, one caller gets true.
   */
  touch(id: string, seenBy: Date, slid: Pick<SessionRecord, 'lastSeenAt' | 'expiresAt'>, tokenHash: string): Promise<boolean>
  /** Lists the live sessions of both kinds, oldest first. */
  listForUser(userId: string, at: Date): Promise<SessionRecord[]>
  /**
   * Revokes a session, or the sessions of a list of ids, by one guarded UPDATE. Also revokes an expired session, because a request that
   * began earlier may still treat the session as live. Returns true if a session was not revoked before, and has the given user and kind.
   */
  revoke(wanted: { id: string | readonly string[]; userId?: string; kind?: SessionKind }, at: Date): Promise<boolean>
  /**
   * Revokes the chosen sessions of the user, of both kinds, by one statement. Must revoke every live session, and every session that
   * expired within the last minute, because a request that began earlier may treat it as live. Returns how many sessions it revoked.
   */
  revokeForUser(userId: string, at: Date, choice?: SessionChoice): Promise<number>
  /** Deletes sessions that were revoked or expired by `before`. Returns how many. */
  deleteExpired(expired: Expired): Promise<number>
}

/** The code beside a mailed link of this purpose. */
export type LinkCodePurpose = Extract<UserTokenPurpose, 'ACTIVATION' | 'PASSWORD_RESET' | 'EMAIL_VERIFICATION' | 'EMAIL_CHANGE'>

/** `DEVICE`: the code of a login from an unknown device. */
export type EmailLoginPurpose = 'DEVICE' | LinkCodePurpose

/** One mail with a link or a code. The link or the code signs a person in. The code can also confirm a session. */
export interface EmailLoginRecord {
  /** A UUID v4 that doorward generates before the insert. The id itself gives no access. */
  id: string
  /** In lower case. The address need not have an account. */
  email: string
  /** SHA-256 of the link's token, hexadecimal. Unique. Null: the mail has no link. A code beside a link works while the link does. */
  tokenHash: string | null
  /** HMAC of the code under a key derived from `jwtSecret`, hexadecimal. Null: the mail has no code. */
  codeHash: string | null
  /** How often a person has tried the code. */
  tries: number
  /** Where the browser that sent the request goes after the login. */
  returnTo: string | null
  /** The IP address of the browser that sent the request. */
  ip: string | null
  userAgent: string | null
  createdAt: Date
  expiresAt: Date
  /** When the link or code was used, or when a newer mail replaced this mail. */
  usedAt: Date | null
  /** The session that the code confirms. Null: the code opens a new session. */
  sessionId: string | null
  /** True: a known device requested the mail, so requests of other clients never replace the mail. */
  isKnownDevice: boolean
  /** What the link or code is for. Null or absent: a login, or the confirmation of a session. */
  purpose?: EmailLoginPurpose | null
  /** The invitation that a new account uses. Null or absent: none. */
  invitationId?: string | null
}

/** A row is open while `usedAt` is null and `expiresAt` is in the future. */
export interface EmailLoginStore {
  /** The fields that rows have. Absent: all but `purpose` and `invitationId`. */
  readonly fields?: ReadonlySet<keyof EmailLoginRecord>
  /** @throws DuplicateRecordError when the token's hash exists already; ValidationError for a value that no column can hold */
  insert(login: EmailLoginRecord): Promise<void>
  /** Also finds a used or expired row. */
  find(wanted: { id: string } | { tokenHash: string }): Promise<EmailLoginRecord | null>
  /**
   * Counts one try of a code, by one guarded UPDATE. doorward compares the code afterwards. Returns the row with the new count. If the
   * row is unknown, used, expired, or was tried `most` times, the method changes nothing and returns null. So at most `most` callers
   * get the row, even if they call at once.
   */
  countTry(id: string, most: number, at: Date): Promise<EmailLoginRecord | null>
  /** Takes one counted try of an open row back, never below zero. Optional: without it, a refused new password or invitation costs a try. */
  uncountTry?(id: string): Promise<void>
  /** Marks an open row as used. If several callers use the row at once, one caller gets true. The others get false. */
  consume(id: string, at: Date): Promise<boolean>
  /** Lists the open rows of an address, oldest first. */
  listOpen(email: string, at: Date): Promise<EmailLoginRecord[]>
  /** Marks every unused row of an address as used, and returns how many. */
  consumeAllForEmail(email: string, at: Date): Promise<number>
  /** Deletes rows that had expired by `before`. Returns how many. */
  deleteExpired(expired: Expired): Promise<number>
}

/** A browser in which a person needs no second factor after the password. */
export interface TrustedDeviceRecord {
  id: string
  userId: string
  /** The newest session that made or used the trust. */
  sessionId: string
  /** SHA-256 of the value in the browser's cookie, hexadecimal. Unique. */
  tokenHash: string
  /** HMAC of the account's address, password, second factor and activation. A row with another digest is no trust. */
  digest: string
  /** For example `Firefox, Windows`. Null: the browser is unknown. */
  name: string | null
  createdAt: Date
  /** Null: never used. */
  lastUsedAt: Date | null
  /** When the trust ends. Never changes. */
  endsAt: Date
}

/** Which trusted devices of a user `deleteForUser` deletes. An empty choice means all. */
export interface TrustedDeviceChoice {
  readonly id?: string
  /** Only those of this session. */
  readonly sessionId?: string
  /** Only the one with this hash. */
  readonly tokenHash?: string
  /** All but the one with this hash. */
  readonly exceptTokenHash?: string
}

export interface TrustedDeviceStore {
  /** @throws DuplicateRecordError when the token's hash exists already */
  insert(device: Omit<TrustedDeviceRecord, 'id'>): Promise<TrustedDeviceRecord>
  /** Also finds a row that has ended. */
  find(tokenHash: string): Promise<TrustedDeviceRecord | null>
  /** Writes the session and the time of a use, by one guarded UPDATE. Returns true if this account has the row. */
  recordUse(id: string, userId: string, use: Pick<TrustedDeviceRecord, 'sessionId' | 'lastUsedAt'>): Promise<boolean>
  /** Lists the rows that end after `at`, newest first. */
  listForUser(userId: string, at: Date): Promise<TrustedDeviceRecord[]>
  /** Deletes the chosen rows of the user by one statement. Returns how many. */
  deleteForUser(userId: string, choice?: TrustedDeviceChoice): Promise<number>
  /** Deletes rows that had ended by `before`. Returns how many. */
  deleteExpired(expired: Expired): Promise<number>
  /** Returns false if the table does not exist. Only the purge calls `isPresent`. If the adapter has no `isPresent`, doorward assumes true. */
  isPresent?(): Promise<boolean>
}

/** An invitation is open while `usesLeft` is above 0, `revokedAt` is null, and `expiresAt` is in the future. */
export interface InvitationRecord {
  id: string
  /** SHA-256 of the token, hexadecimal. Unique. */
  tokenHash: string
  /** In lower case. Only an account with this address uses the invitation. Null: any account. */
  email: string | null
  /** JSON text of the host. Null: none. */
  data: string | null
  usesLeft: number
  /** True: only a mail has shown the token, so the token verifies the address. */
  isMailed: boolean
  /** The administrator. Null: code of the host. */
  createdBy: string | null
  createdAt: Date
  expiresAt: Date
  revokedAt: Date | null
}

export interface InvitationStore {
  /** @throws DuplicateRecordError when the token's hash exists already */
  insert(invitation: Omit<InvitationRecord, 'id'>): Promise<InvitationRecord>
  /** Also finds an invitation that is not open. */
  find(wanted: { id: string } | { tokenHash: string }): Promise<InvitationRecord | null>
  /** Lists invitations newest first, at most `limit`, and only those after the invitation of `after`. Equal times are ordered by id. */
  list(page: { after: Pick<InvitationRecord, 'id' | 'createdAt'> | null; limit: number }): Promise<InvitationRecord[]>
  /** Lists the open invitations that were mailed to this address, oldest first, at most 100. */
  listOpenMailed(email: string, at: Date): Promise<InvitationRecord[]>
  /**
   * Takes one use of an open invitation, by one guarded UPDATE. Returns the row with the uses that are left. If the invitation is not open,
   * changes nothing and returns null. If several callers take the last use at once, one caller gets the row.
   */
  consume(id: string, at: Date): Promise<InvitationRecord | null>
  /** Replaces the token of an open invitation that was mailed, by one guarded UPDATE. Returns true if there was one. */
  replaceToken(id: string, tokenHash: string, at: Date): Promise<boolean>
  /** Revokes an invitation by one guarded UPDATE. Returns true if it was not revoked before. */
  revoke(id: string, at: Date): Promise<boolean>
  /** Deletes invitations that had expired by `before`, with their uses. Returns how many invitations. */
  deleteExpired(expired: Expired): Promise<number>
  /** Returns false if the table does not exist. Only the purge calls `isPresent`. If the adapter has no `isPresent`, doorward assumes true. */
  isPresent?(): Promise<boolean>
}

/** An event that waits to be delivered, or was delivered less than a day ago. */
export interface OutboxRecord {
  /** A UUID. */
  id: string
  /** The order of the events of one user: a later event has a larger number. */
  seq: number
  /** The name of the event, such as `password.changed`. */
  name: string
  /** The account. No foreign key, because an event outlives its account. Null: the event is about no account. */
  userId: string | null
  /** The payload of the event, as JSON. */
  payload: string
  /** When the event happened. */
  createdAt: Date
  /** How many deliveries failed. */
  tries: number
  /** The earliest time of the next delivery. */
  nextAt: Date
  /** Until when one process delivers the event. Null: no process does. */
  leasedUntil: Date | null
  /** When the event was delivered. Null: it waits. */
  deliveredAt: Date | null
}

export interface OutboxStatus {
  /** The number of events that are not delivered. */
  readonly waiting: number
  /** The number of them whose last delivery failed. */
  readonly failing: number
  /** When the oldest of them happened. Null: none waits. */
  readonly oldestAt: Date | null
}

export interface OutboxStore {
  /** Inserts the events in their order. Each `id` is given. */
  insert(events: readonly Pick<OutboxRecord, 'id' | 'name' | 'userId' | 'payload' | 'createdAt'>[]): Promise<void>
  /**
   * Leases at most `most` events until `until`, and returns them in the order of `seq`. Takes only events that are not delivered, whose
   * lease is over and whose `nextAt` has come, and of one user only the oldest that is not delivered. Of several callers, one gets an event.
   */
  take(choice: { now: Date; until: Date; most: number }): Promise<OutboxRecord[]>
  /** Writes `deliveredAt`. Returns true if the event waited. */
  markDelivered(id: string, at: Date): Promise<boolean>
  /**
   * Counts a failed delivery, writes `nextAt` and ends the lease, if the lease is still the given one. A later lease ends more than a second
   * later.
   */
  markFailed(failed: Pick<OutboxRecord, 'id' | 'leasedUntil' | 'nextAt'>): Promise<boolean>
  /** Deletes an event that waits. Returns true if there was one. */
  discard(id: string): Promise<boolean>
  status(): Promise<OutboxStatus>
  /** Deletes events that were delivered at `before` or earlier. Returns how many. */
  deleteDelivered(expired: Expired): Promise<number>
  /** Returns false if the table does not exist. Only the purge calls `isPresent`. If the adapter has no `isPresent`, doorward assumes true. */
  isPresent?(): Promise<boolean>
}

/** A task that one process does at a time. */
export interface LeaseRecord {
  /** The name of the task, up to 64 characters. */
  id: string
  /** Who has the lease, or had it last. */
  holder: string | null
  leasedUntil: Date | null
  /** When the task was last done. */
  ranAt: Date | null
}

export interface LeaseStore {
  /**
   * Gives the lease to `holder` until `until`, if nobody has it at `now`, and if the task was last done at `ranBefore` or earlier, or never.
   * A time after `now`, of a clock that ran ahead, counts as never.
   * Makes the row if there is none. Of several callers, one gets true.
   */
  take(lease: { id: string; holder: string; now: Date; until: Date; ranBefore: Date }): Promise<boolean>
  /** Moves the end of the lease. Returns false if another holder took it meanwhile. */
  renew(lease: { id: string; holder: string; until: Date }): Promise<boolean>
  /** Ends the lease, if `holder` still has it. */
  release(lease: { id: string; holder: string }): Promise<void>
  /** Writes `ranAt`. Makes the row if there is none. */
  recordRun(id: string, at: Date): Promise<void>
  find(id: string): Promise<LeaseRecord | null>
  /** Returns false if the table does not exist. If the adapter has no `isPresent`, doorward assumes true. */
  isPresent?(): Promise<boolean>
}

/** An account has used an invitation. Unique over invitation and user. */
export interface InvitationUseRecord {
  id: string
  invitationId: string
  userId: string
  createdAt: Date
}

export interface InvitationUseStore {
  /** @throws DuplicateRecordError when the user has used the invitation already */
  insert(use: Omit<InvitationUseRecord, 'id'>): Promise<InvitationUseRecord>
  /** Returns true if the user has used the invitation. */
  isUsedBy(invitationId: string, userId: string): Promise<boolean>
  /** Lists the uses of a user, oldest first. Optional: without it, the export of an account has no invitations. */
  listForUser?(userId: string): Promise<InvitationUseRecord[]>
}

const isDuplicateRecord = Symbol.for('doorward.duplicate-record.v1')

/** A unique constraint refused the row. On PostgreSQL the transaction cannot continue, so read and decide again in a new transaction. */
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

const isReferencedRecord = Symbol.for('doorward.referenced-record.v1')

/** A foreign key of another table refers to the row, so the row cannot be deleted. The transaction cannot continue. */
export class ReferencedRecordError extends Error {
  override readonly name = 'ReferencedRecordError'
  /** The other table. Null: unknown. */
  readonly table: string | null

  constructor(message: string, table: string | null = null) {
    super(message)
    this.table = table
  }

  /** Also true for an error of another copy of the package in the same process. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && isReferencedRecord in value
  }

  get [isReferencedRecord](): true {
    return true
  }
}
