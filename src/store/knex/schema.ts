import type { Knex } from 'knex'
import { poolConnection } from './connection'
import { type ColumnTypes, type Dialect, dialectOf } from './dialect'

/**
 * Makes the default tables where they are missing. Idempotent, and safe when several processes start at once.
 *
 * @throws ConfigurationError for a knex client other than `pg` and `better-sqlite3`
 */
export async function createAuthTables(knex: Knex): Promise<void> {
  const dialect = dialectOf(knex)
  for (const version of VERSIONS) await apply(knex, dialect, version.statements(dialect.types))
}

/**
 * The same tables as versioned knex migrations. Give them a bookkeeping table of their own, since knex expects to find
 * every migration it once ran: `knex.migrate.latest({ migrationSource, tableName: 'auth_migrations' })`.
 */
export const migrationSource: Knex.MigrationSource<unknown> = {
  getMigrations: async () => [...VERSIONS],
  getMigrationName: (version) => (version as Version).name, // knex hands back what getMigrations returned
  getMigration: async (version) => ({
    async up(knex: Knex) {
      const dialect = dialectOf(knex)
      await run(knex, dialect, (version as Version).statements(dialect.types)) // as above
    },
    async down(knex: Knex) {
      for (const table of (version as Version).tables.toReversed()) await knex.schema.dropTableIfExists(table) // as above
    },
  }),
}

/** A step of the schema. Once released it does not change any more: a later step alters what it made. */
interface Version {
  readonly name: string
  readonly tables: readonly string[]
  statements(types: ColumnTypes): readonly string[]
}

async function apply(knex: Knex, dialect: Dialect, statements: readonly string[]): Promise<void> {
  const connection = poolConnection(knex, dialect)
  if (dialect.schemaLock) return connection.together('createAuthTables', (trx) => run(trx, dialect, statements))
  for (const statement of statements) await connection.statement('createAuthTables', (db) => db.raw(statement))
}

async function run(trx: Knex, dialect: Dialect, statements: readonly string[]): Promise<void> {
  if (dialect.schemaLock) await trx.raw(dialect.schemaLock)
  for (const statement of statements) await trx.raw(statement)
}

const VERSIONS: readonly Version[] = [
  {
    name: 'doorward_0001_tables',
    tables: ['auth_users', 'auth_identities', 'auth_user_tokens', 'auth_refresh_tokens', 'auth_recovery_codes', 'auth_sessions'],
    statements: ({ id, text, boolean, instant }) => [
      `create table if not exists auth_users (
        id ${id} not null primary key,
        is_active ${boolean} not null,
        created_at ${instant} not null,
        updated_at ${instant} not null,
        email varchar(320) not null unique,
        hashed_password ${text} not null,
        is_admin ${boolean} not null,
        last_login_at ${instant},
        name ${text},
        totp_secret ${text},
        totp_enabled_at ${instant},
        totp_last_step integer,
        email_verified_at ${instant},
        activated_at ${instant},
        password_set_at ${instant}
      )`,
      `create table if not exists auth_identities (
        id ${id} not null primary key,
        user_id ${id} not null references auth_users (id) on delete cascade,
        provider varchar(64) not null,
        subject varchar(255) not null,
        email varchar(320),
        email_verified ${boolean},
        name varchar(200),
        picture varchar(1024),
        created_at ${instant} not null,
        last_login_at ${instant} not null,
        unique (provider, subject),
        unique (user_id, provider)
      )`,
      `create table if not exists auth_user_tokens (
        id ${id} not null primary key,
        user_id ${id} not null references auth_users (id) on delete cascade,
        token_hash varchar(64) not null unique,
        purpose varchar(32) not null,
        payload ${text},
        expires_at ${instant} not null,
        used_at ${instant},
        created_at ${instant} not null
      )`,
      'create index if not exists auth_user_tokens_user on auth_user_tokens (user_id, purpose)',
      'create index if not exists auth_user_tokens_expiry on auth_user_tokens (expires_at)',
      `create table if not exists auth_refresh_tokens (
        id ${id} not null primary key,
        user_id ${id} not null references auth_users (id) on delete cascade,
        token_hash varchar(64) not null unique,
        family_id varchar(36) not null,
        parent_id ${id},
        amr varchar(64),
        expires_at ${instant} not null,
        family_expires_at ${instant} not null,
        used_at ${instant},
        revoked_at ${instant},
        created_at ${instant} not null
      )`,
      'create index if not exists auth_refresh_tokens_user on auth_refresh_tokens (user_id)',
      'create index if not exists auth_refresh_tokens_family on auth_refresh_tokens (family_id)',
      'create index if not exists auth_refresh_tokens_parent on auth_refresh_tokens (parent_id)',
      'create index if not exists auth_refresh_tokens_expiry on auth_refresh_tokens (family_expires_at)',
      `create table if not exists auth_recovery_codes (
        id ${id} not null primary key,
        user_id ${id} not null references auth_users (id) on delete cascade,
        code_hash varchar(64) not null,
        used_at ${instant},
        unique (user_id, code_hash)
      )`,
      `create table if not exists auth_sessions (
        id ${id} not null primary key,
        user_id ${id} not null references auth_users (id) on delete cascade,
        session_hash varchar(64) not null unique,
        amr varchar(64) not null,
        ip varchar(45),
        user_agent ${text},
        created_at ${instant} not null,
        last_seen_at ${instant} not null,
        expires_at ${instant} not null
      )`,
      'create index if not exists auth_sessions_user on auth_sessions (user_id)',
      'create index if not exists auth_sessions_expiry on auth_sessions (expires_at)',
    ],
  },
]
