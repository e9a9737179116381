import type { Knex } from 'knex'
import { ConfigurationError } from '../../errors'
import { poolConnection, transactionConnection } from './connection'
import { databaseName } from './database-name'
import { bindTables, type HostTables } from './default-tables'
import type { Dialect } from './dialect'
import { dialectOf } from './dialect-of'
import type { Queryable } from './queryable'
import { type AddedIndex, type TableSchema, type UsersKey, VERSIONS, type Version } from './schema-versions'

/**
 * Makes the default tables where they are missing. Idempotent, and safe when several processes start at once.
 *
 * @param hostTables the table options of `createKnexStore`: a table that is named there is yours and is left alone, and
 * the others refer to your users' key, whatever its type. Your users table must be there already.
 * @throws ConfigurationError for a knex client other than `pg`, `mysql2` and `better-sqlite3`
 */
export async function createAuthTables(knex: Knex, hostTables: HostTables = {}): Promise<void> {
  const dialect = dialectOf(knex)
  bindTables(knex, dialect, hostTables) // refuses options that cannot be meant
  const { statement, together } = knex.isTransaction
    ? transactionConnection(knex as Knex.Transaction, dialect) // as it says
    : poolConnection(knex, dialect)
  const perform = dialect.withSchemaLock ? together : statement
  for (const version of VERSIONS) await perform('createAuthTables', (db) => apply(db, dialect, version, hostTables))
}

/**
 * The same tables as versioned knex migrations. Give them a bookkeeping table of their own, since knex expects to find
 * every migration it once ran: `knex.migrate.latest({ migrationSource, tableName: 'auth_migrations' })`.
 */
export const migrationSource: Knex.MigrationSource<unknown> = {
  getMigrations: async () => [...VERSIONS],
  getMigrationName: (version) => (version as Version).name, // knex hands back what getMigrations returned
  getMigration: async (version) => ({
    up: (knex: Knex) => apply(knex, dialectOf(knex), version as Version), // as above
    async down(knex: Knex) {
      for (const index of (version as Version).indexes ?? []) await dropIndex(knex, dialectOf(knex), index) // as above
      for (const { name } of (version as Version).tables.toReversed()) await knex.schema.dropTableIfExists(name) // as above
    },
  }),
}

async function apply(db: Queryable, dialect: Dialect, version: Version, hostTables: HostTables = {}): Promise<void> {
  const create = async () => {
    const [options, users] = [await dialect.tableOptions(db), await usersOf(db, dialect, hostTables)]
    const isOurs = ({ record }: Pick<TableSchema, 'record'>) => record === null || hostTables[record] === undefined
    for (const table of version.tables.filter(isOurs))
      for (const statement of statements(table, dialect, users, options)) await db.raw(statement)
    for (const index of version.indexes?.filter(isOurs) ?? []) await addIndex(db, dialect, index)
  }
  return dialect.withSchemaLock ? dialect.withSchemaLock(db, create) : create()
}

/** What the other tables refer to. */
async function usersOf(db: Queryable, dialect: Dialect, { users }: HostTables): Promise<UsersKey> {
  if (!users) return { reference: 'auth_users (id)', type: dialect.types.id }
  const { name, key } = hostUsers(db, dialect, users)
  const type = await dialect.columnType(db, databaseName(db, name), databaseName(db, key))
  if (type) return { reference: db.raw('?? (??)', [name, key]).toQuery(), type }
  throw new ConfigurationError(`createAuthTables(): there is no column ${name}.${key} yet; create your own users table first.`)
}

function hostUsers(db: Queryable, dialect: Dialect, users: NonNullable<HostTables['users']>): { name: string; key: string } {
  const table = bindTables(db, dialect, { users }).users
  return { name: table.name, key: table.bareColumn('id') }
}

function statements(
  { name, columns, constraints, indexes }: TableSchema,
  dialect: Dialect,
  users: UsersKey,
  options: string,
): readonly string[] {
  const inside = dialect.indexesInTable ? indexes.map((index) => `index ${index.name} (${index.columns})`) : []
  const lines = [...columns(dialect.types, users.type), ...constraints(users.reference), ...inside]
  const after = dialect.indexesInTable ? [] : indexes
  return [
    `create table if not exists ${name} (\n  ${lines.join(',\n  ')}\n) ${options}`.trimEnd(),
    ...after.map((index) => `create index if not exists ${index.name} on ${name} (${index.columns})`),
  ]
}

/** MySQL knows no IF NOT EXISTS here; there, nobody else makes one meanwhile (`withSchemaLock`). */
async function addIndex(db: Queryable, dialect: Dialect, index: AddedIndex): Promise<void> {
  const { name, table, columns } = index
  if (!dialect.indexesInTable) await db.raw(`create index if not exists ${name} on ${table} (${columns})`)
  else if (!(await dialect.hasIndex(db, table, name))) await db.raw(`create index ${name} on ${table} (${columns})`)
}

async function dropIndex(db: Queryable, dialect: Dialect, { name, table }: AddedIndex): Promise<void> {
  if (!dialect.indexesInTable) await db.raw(`drop index if exists ${name}`)
  else if (await dialect.hasIndex(db, table, name)) await db.raw(`drop index ${name} on ${table}`)
}
