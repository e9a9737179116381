import type { HostTables } from './default-tables'
import type { ColumnTypes, Dialect } from './dialect'
import { databaseName, type Queryable } from './queryable'

const ofUser = (users: string): string => `foreign key (user_id) references ${users} on delete cascade`

const recordOf = { user_tokens: 'userTokens', sessions: 'sessions', email_logins: 'emailLogins' } as const
const onUsers = { table: 'auth_users', record: 'users' } as const
const forFilters = { ...onUsers, isOptional: true } as const
const listed = 'created_at, id, is_active, is_admin, updated_at, email_verified_at, activated_at, totp_enabled_at'

export const VERSIONS: readonly Version[] = [
  {
    name: 'doorward_0001_tables',
    tables: [
      {
        name: 'auth_users',
        record: 'users',
        columns: ({ id, text, indexedText, boolean, instant }) => [
          `id ${id} not null primary key`,
          `is_active ${boolean} not null`,
          `created_at ${instant} not null`,
          `updated_at ${instant} not null`,
          'email varchar(320) not null unique',
          `hashed_password ${text} not null`,
          `is_admin ${boolean} not null`,
          `last_login_at ${instant}`,
          `name ${indexedText}`,
          `totp_secret ${text}`,
          `totp_enabled_at ${instant}`,
          'totp_last_step integer',
          `email_verified_at ${instant}`,
          `activated_at ${instant}`,
          `password_set_at ${instant}`,
        ],
        constraints: () => [],
        indexes: [],
      },
      {
        name: 'auth_identities',
        record: 'identities',
        columns: ({ id, boolean, instant }, usersKey) => [
          `id ${id} not null primary key`,
          `user_id ${usersKey} not null`,
          'provider varchar(64) not null',
          'subject varchar(255) not null',
          'email varchar(320)',
          `email_verified ${boolean}`,
          'name varchar(200)',
          'picture varchar(1024)',
          `created_at ${instant} not null`,
          `last_login_at ${instant} not null`,
        ],
        constraints: (users) => ['unique (provider, subject)', 'unique (user_id, provider)', ofUser(users)],
        indexes: [],
      },
      {
        name: 'auth_user_tokens',
        record: 'userTokens',
        columns: ({ id, text, instant }, usersKey) => [
          `id ${id} not null primary key`,
          `user_id ${usersKey} not null`,
          'token_hash varchar(64) not null unique',
          'purpose varchar(32) not null',
          `payload ${text}`,
          `expires_at ${instant} not null`,
          `used_at ${instant}`,
          `created_at ${instant} not null`,
        ],
        constraints: (users) => [ofUser(users)],
        indexes: [{ name: 'auth_user_tokens_user', columns: 'user_id, purpose' }],
      },
      {
        name: 'auth_recovery_codes',
        record: 'recoveryCodes',
        columns: ({ id, instant }, usersKey) => [
          `id ${id} not null primary key`,
          `user_id ${usersKey} not null`,
          'code_hash varchar(64) not null',
          `used_at ${instant}`,
        ],
        constraints: (users) => ['unique (user_id, code_hash)', ofUser(users)],
        indexes: [],
      },
      {
        name: 'auth_counters',
        record: null,
        // `ends_at`: milliseconds since 1970 by the application's clock, because the store compares it only with this clock.
        columns: () => ['counter_key varchar(255) not null primary key', 'count integer not null', 'ends_at bigint not null'],
        constraints: () => [],
        indexes: [{ name: 'auth_counters_end', columns: 'ends_at' }],
      },
      {
        name: 'auth_audit_log',
        record: null,
        // No foreign key, so that the log keeps the events of a deleted account.
        columns: ({ id, text, instant }) => [
          `id ${id} not null primary key`,
          'name varchar(64) not null',
          'user_id varchar(64)',
          `payload ${text} not null`,
          'request_id varchar(128)',
          `created_at ${instant} not null`,
        ],
        constraints: () => [],
        indexes: [
          { name: 'auth_audit_log_created', columns: 'created_at' },
          { name: 'auth_audit_log_user', columns: 'user_id' },
        ],
      },
      {
        name: 'auth_sessions',
        record: 'sessions',
        columns: ({ id, text, boolean, instant }, usersKey) => [
          `id ${id} not null primary key`,
          `user_id ${usersKey} not null`,
          'kind varchar(16) not null',
          'token_hash varchar(64) not null unique',
          'generation integer not null',
          `rotated_at ${instant}`,
          'amr varchar(64) not null',
          `authenticated_at ${instant}`,
          `is_persistent ${boolean} not null`,
          'ip varchar(45)',
          `user_agent ${text}`,
          'provider varchar(64)',
          'provider_sid varchar(255)',
          `created_at ${instant} not null`,
          `last_seen_at ${instant} not null`,
          `expires_at ${instant} not null`,
          `ends_at ${instant} not null`,
          `revoked_at ${instant}`,
        ],
        constraints: (users) => [ofUser(users)],
        // InnoDB locks the user when a row moves in the foreign key's index. With its own index, a refresh does not wait.
        indexes: [{ name: 'auth_sessions_user', columns: 'user_id', on: ['mysql'] }],
      },
      {
        name: 'auth_passkeys',
        record: 'passkeys',
        columns: ({ id, text, boolean, instant }, usersKey) => [
          `id ${id} not null primary key`,
          `user_id ${usersKey} not null`,
          'user_handle varchar(64) not null',
          // 700 characters are enough for 512 bytes in base64url. MariaDB can index at most 768 characters.
          'credential_id varchar(700) not null unique',
          `public_key ${text} not null`,
          // The counter is an unsigned 32-bit integer, so a signed `integer` is too small.
          'sign_count bigint not null',
          'transports varchar(64) not null',
          `is_backup_eligible ${boolean} not null`,
          `is_backed_up ${boolean} not null`,
          'aaguid varchar(36) not null',
          'name varchar(64)',
          `created_at ${instant} not null`,
          `last_used_at ${instant}`,
        ],
        constraints: (users) => [ofUser(users)],
        indexes: [{ name: 'auth_passkeys_user', columns: 'user_id' }],
      },
      {
        name: 'auth_email_logins',
        record: 'emailLogins',
        // No foreign key: the address need not have an account.
        columns: ({ id, text, boolean, instant }) => [
          `id ${id} not null primary key`,
          'email varchar(320) not null',
          'token_hash varchar(64) unique',
          'code_hash varchar(64)',
          'tries integer not null',
          `return_to ${text}`,
          'ip varchar(45)',
          `user_agent ${text}`,
          `created_at ${instant} not null`,
          `expires_at ${instant} not null`,
          `used_at ${instant}`,
          'session_id varchar(36)',
          `is_known_device ${boolean} not null`,
        ],
        constraints: () => [],
        indexes: [{ name: 'auth_email_logins_email', columns: 'email' }],
      },
    ],
    indexes: [
      // The list of users reads its pages along this index.
      { ...onUsers, name: 'auth_users_created', columns: 'created_at, id' },
      // These indexes keep the filters of the admin list fast with a million users.
      { ...forFilters, name: 'auth_users_admins', columns: 'created_at, id', where: 'is_admin', on: ['postgresql'] },
      { ...forFilters, name: 'auth_users_admins', columns: 'is_admin, created_at, id', on: ['sqlite', 'mysql'] },
      // This index has the expression of `TextConditions`, so that the comparisons and `startswith` can use the index.
      { ...forFilters, name: 'auth_users_email_bytes', columns: '(cast(email as text) collate "C")', on: ['postgresql'] },
      // SQLite then reads only matching rows. `last_login_at` is not in it, because every login would write the index too.
      { ...forFilters, name: 'auth_users_list', columns: `${listed}, email, name`, on: ['sqlite'] },
      // Rows lie by random keys: without an index, the list takes a minute. One for both texts exceeds a buffer pool of 128 MiB.
      { ...forFilters, name: 'auth_users_list', columns: `${listed}, last_login_at`, on: ['mysql'] },
      { ...forFilters, name: 'auth_users_list_email', columns: 'created_at, id, email', on: ['mysql'] },
      { ...forFilters, name: 'auth_users_list_name', columns: 'created_at, id, name', on: ['mysql'] },
      // The purge reads these indexes in their order. Without the id, it could not continue within rows that ended at one instant.
      ...(['user_tokens', 'sessions', 'email_logins'] as const).map((name) => ({
        table: `auth_${name}`,
        record: recordOf[name],
        name: `auth_${name}_ended`,
        columns: 'expires_at, id',
      })),
      // Finds the live sessions of an account among any number of ended ones. A host's table works with an index that begins with `user_id`.
      {
        table: 'auth_sessions',
        record: 'sessions',
        name: 'auth_sessions_live',
        columns: 'user_id, expires_at',
        isOptional: true,
      },
    ],
  },
  {
    name: 'doorward_0002_login_tasks',
    tables: [],
    columns: [
      { ...onUsers, name: 'password_expired_at', type: ({ instant }) => instant },
      { table: 'auth_email_logins', record: 'emailLogins', name: 'purpose', type: () => 'varchar(18)' },
    ],
  },
  {
    name: 'doorward_0003_trusted_devices',
    tables: [
      {
        name: 'auth_trusted_devices',
        record: 'trustedDevices',
        // `session_id` has no foreign key, because a trust outlives the session's row.
        columns: ({ id, instant }, usersKey) => [
          `id ${id} not null primary key`,
          `user_id ${usersKey} not null`,
          'session_id varchar(36) not null',
          'token_hash varchar(64) not null unique',
          'digest varchar(64) not null',
          'name varchar(64)',
          `created_at ${instant} not null`,
          `last_used_at ${instant}`,
          `ends_at ${instant} not null`,
        ],
        constraints: (users) => [ofUser(users)],
        indexes: [
          { name: 'auth_trusted_devices_user', columns: 'user_id' },
          { name: 'auth_trusted_devices_end', columns: 'ends_at' },
        ],
      },
    ],
  },
  {
    name: 'doorward_0004_invitations',
    tables: [
      {
        name: 'auth_invitations',
        record: 'invitations',
        // `created_by` has no foreign key, because an invitation outlives its administrator.
        columns: ({ id, text, boolean, instant }, usersKey) => [
          `id ${id} not null primary key`,
          'token_hash varchar(64) not null unique',
          'email varchar(320)',
          `data ${text}`,
          'uses_left integer not null',
          `is_mailed ${boolean} not null`,
          `created_by ${usersKey}`,
          `created_at ${instant} not null`,
          `expires_at ${instant} not null`,
          `revoked_at ${instant}`,
        ],
        constraints: () => [],
        indexes: [
          { name: 'auth_invitations_email', columns: 'email' },
          { name: 'auth_invitations_created', columns: 'created_at, id' },
          { name: 'auth_invitations_ended', columns: 'expires_at, id' },
        ],
      },
      {
        name: 'auth_invitation_uses',
        record: 'invitationUses',
        // `invitation_id` has no foreign key, because the invitations may be in a table of the host.
        columns: ({ id, instant }, usersKey) => [
          `id ${id} not null primary key`,
          'invitation_id varchar(36) not null',
          `user_id ${usersKey} not null`,
          `created_at ${instant} not null`,
        ],
        constraints: (users) => ['unique (invitation_id, user_id)', ofUser(users)],
        indexes: [{ name: 'auth_invitation_uses_user', columns: 'user_id' }],
      },
    ],
    columns: [{ table: 'auth_email_logins', record: 'emailLogins', name: 'invitation_id', type: () => 'varchar(36)' }],
  },
  {
    name: 'doorward_0005_approval',
    tables: [],
    columns: [{ ...onUsers, name: 'approval_requested_at', type: ({ instant }) => instant }],
  },
  {
    name: 'doorward_0006_outbox',
    tables: [
      {
        name: 'auth_outbox',
        record: 'outbox',
        // No foreign key, because the event of a deleted account must still be delivered.
        columns: ({ sequence, id, text, instant }) => [
          `seq ${sequence}`,
          `id ${id} not null unique`,
          'name varchar(64) not null',
          'user_id varchar(64)',
          `payload ${text} not null`,
          `created_at ${instant} not null`,
          'tries integer not null',
          `next_at ${instant} not null`,
          `leased_until ${instant}`,
          `delivered_at ${instant}`,
        ],
        constraints: () => [],
        indexes: [
          { name: 'auth_outbox_order', columns: 'delivered_at, seq' },
          { name: 'auth_outbox_user', columns: 'user_id, delivered_at, seq' },
        ],
      },
    ],
  },
  {
    name: 'doorward_0007_leases',
    tables: [
      {
        name: 'auth_leases',
        record: 'leases',
        columns: ({ instant }) => [
          'name varchar(64) not null primary key',
          'holder varchar(64)',
          `leased_until ${instant}`,
          `ran_at ${instant}`,
        ],
        constraints: () => [],
        indexes: [],
      },
    ],
  },
  {
    name: 'doorward_0008_deletion',
    tables: [],
    columns: [{ ...onUsers, name: 'deletion_requested_at', type: ({ instant }) => instant }],
    // Finds the few due deletions among all accounts.
    indexes: [{ ...forFilters, name: 'auth_users_deletion', columns: 'deletion_requested_at, id' }],
  },
]

/** A released version never changes: a later version alters the tables of an earlier version. */
export interface Version {
  readonly name: string
  readonly tables: readonly TableSchema[]
  /** In tables of earlier versions, which may already have rows. */
  readonly columns?: readonly AddedColumn[]
  /** Also on tables of earlier versions, which may already have rows. */
  readonly indexes?: readonly AddedIndex[]
}

/** Holds null in the rows that are there already. */
export interface AddedColumn {
  readonly table: string
  readonly record: keyof HostTables
  readonly name: string
  type(types: ColumnTypes): string
}

export interface AddedIndex extends IndexSchema {
  readonly where?: string
  /** A table of the host works without the index, so the check of the tables does not ask for it. */
  readonly isOptional?: true
  readonly table: string
  readonly record: keyof HostTables | null
}

interface IndexSchema {
  readonly name: string
  readonly columns: string
  readonly on?: readonly Dialect['name'][]
}

export interface TableSchema {
  readonly name: string
  /** Null: no option maps the table, so the table is always ours. */
  readonly record: keyof HostTables | null
  columns(types: ColumnTypes, usersKey: string): readonly string[]
  /** On separate lines after the columns, because MySQL ignores `references` next to a column. */
  constraints(users: string): readonly string[]
  readonly indexes: readonly IndexSchema[]
}

export interface UsersKey {
  readonly table: string
  readonly key: string
  readonly type: string
}

export interface SchemaPlace {
  readonly knex: Queryable
  readonly dialect: Dialect
  readonly hostTables: HostTables
}

export async function pendingVersions(place: SchemaPlace): Promise<Version[]> {
  const pending: Version[] = []
  for (const version of VERSIONS) if (!isNothing(await missingOf(place, version))) pending.push(version)
  return pending
}

interface Missing {
  readonly tables: readonly TableSchema[]
  readonly columns: readonly AddedColumn[]
  /** Without the indexes that are made together with a missing table. */
  readonly indexes: readonly AddedIndex[]
}

export function isNothing({ tables, columns, indexes }: Missing): boolean {
  return tables.length + columns.length + indexes.length === 0
}

export async function missingOf({ knex, dialect, hostTables }: SchemaPlace, version: Version): Promise<Missing> {
  const tables: TableSchema[] = []
  const wanted: AddedIndex[] = []
  for (const table of ownTables(version, hostTables)) {
    if (!(await dialect.hasTable(knex, databaseName(knex, table.name)))) tables.push(table)
    else wanted.push(...indexesOf(table, dialect).map((index) => ({ ...index, table: table.name, record: table.record })))
  }
  const indexes: AddedIndex[] = []
  for (const index of [...wanted, ...addedIndexes(version, hostTables, dialect)])
    if (!(await dialect.hasIndex(knex, index.table, index.name))) indexes.push(index)
  return { tables, columns: await missingColumns({ knex, dialect, hostTables }, version), indexes }
}

async function missingColumns({ knex, dialect, hostTables }: SchemaPlace, version: Version): Promise<AddedColumn[]> {
  const missing: AddedColumn[] = []
  for (const column of ownColumns(version, hostTables))
    if ((await dialect.columnType(knex, databaseName(knex, column.table), databaseName(knex, column.name))) === null) missing.push(column)
  return missing
}

export function indexesOf({ indexes }: TableSchema, dialect: Dialect): readonly IndexSchema[] {
  return indexes.filter((index) => isOn(index, dialect))
}

function isOn({ on }: IndexSchema, { name }: Dialect): boolean {
  return on?.includes(name) ?? true
}

export function ownTables({ tables }: Version, hostTables: HostTables): readonly TableSchema[] {
  return tables.filter((table) => isOurs(table, hostTables))
}

export function ownColumns({ columns = [] }: Version, hostTables: HostTables): readonly AddedColumn[] {
  return columns.filter((column) => isOurs(column, hostTables))
}

export function addedIndexes({ indexes = [] }: Version, hostTables: HostTables, dialect: Dialect): readonly AddedIndex[] {
  return indexes.filter((index) => isOurs(index, hostTables) && isOn(index, dialect))
}

function isOurs({ record }: { readonly record: keyof HostTables | null }, hostTables: HostTables): boolean {
  return record === null || hostTables[record] === undefined
}
