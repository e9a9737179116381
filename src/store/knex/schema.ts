import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import { ConfigurationError } from '../../core/errors'
import { type Connection, poolConnection, transactionConnection } from './connection'
import { bindTables, type HostTables } from './default-tables'
import type { Dialect } from './dialect'
import { dialectOf } from './dialect-of'
import { databaseName, type Queryable } from './queryable'
import {
  type AddedColumn,
  type AddedIndex,
  addedIndexes,
  indexesOf,
  isNothing,
  missingOf,
  ownColumns,
  ownTables,
  type TableSchema,
  type UsersKey,
  VERSIONS,
  type Version,
} from './schema-versions'

/**
 * Makes the missing default tables and indexes. If nothing is missing, the database role needs no right to create. You can call the
 * function again at any time, also from several processes at once. On PostgreSQL, an index on a table with rows is built CONCURRENTLY, except if `knex` is a transaction.
 *
 * @param hostTables the table options of `createKnexStore`. If you name a table there, the table is yours and is not changed. The default
 *   tables refer to the key of your users table, whatever its type. Your users table must exist already.
 * @throws ConfigurationError for a knex client other than `pg`, `mysql2` and `better-sqlite3`
 */
export async function createAuthTables(knex: Knex, hostTables: HostTables = {}): Promise<void> {
  const dialect = dialectOf(knex)
  bindTables(knex, dialect, hostTables) // rejects options that are unknown or wrong
  const connection = knex.isTransaction
    ? transactionConnection(knex as Knex.Transaction, dialect) // `isTransaction` says so
    : poolConnection(knex, dialect)
  for (const version of VERSIONS) {
    // Looks first, because PostgreSQL refuses CREATE ... IF NOT EXISTS to a role without CREATE, also if the table exists.
    const missing = await connection.statement('createAuthTables', (db) => missingOf({ knex: db, dialect, hostTables }, version))
    if (isNothing(missing)) continue
    await perform(connection, (db) => makeTables(db, dialect, version, hostTables))
    for (const index of missing.indexes) await addIndex(connection, index, { isInTransaction: knex.isTransaction === true })
  }
}

/** SQLite has no schema lock, and needs no transaction, because the statements can run again. */
function perform(connection: Connection, work: (db: Queryable) => Promise<void>): Promise<void> {
  const { withSchemaLock } = connection.dialect
  if (withSchemaLock) return connection.together('createAuthTables', (db) => withSchemaLock(db, () => work(db)))
  return connection.statement('createAuthTables', work)
}

/**
 * Returns the default tables as versioned knex migrations, for a host that has some tables of its own. `migrationSourceFor({ users: … })`
 * takes the table options of `createKnexStore`. Use a separate migrations table, because knex fails if its migrations table names a
 * migration that the source does not contain: `knex.migrate.latest({ migrationSource, tableName: 'auth_migrations' })`.
 */
export function migrationSourceFor(hostTables: HostTables = {}): Knex.MigrationSource<unknown> {
  return {
    getMigrations: async () => [...VERSIONS],
    getMigrationName: (version) => (version as Version).name, // knex passes back what getMigrations returned
    getMigration: async (migration) => {
      const version = migration as Version // as above
      return {
        up: (knex: Knex) => up(knex, version, hostTables),
        down: (knex: Knex) => down(knex, version, hostTables),
        // CREATE INDEX CONCURRENTLY does not run in a transaction. An interrupted run may run again.
        ...(version.indexes && { config: { transaction: false } }),
      }
    },
  }
}

/** `migrationSourceFor` with all default tables. */
export const migrationSource: Knex.MigrationSource<unknown> = migrationSourceFor()

async function up(knex: Knex, version: Version, hostTables: HostTables): Promise<void> {
  const dialect = dialectOf(knex)
  bindTables(knex, dialect, hostTables)
  await together(knex, (db) => makeTables(db, dialect, version, hostTables))
  const { indexes } = await missingOf({ knex, dialect, hostTables }, version)
  for (const index of indexes) await buildIndex(knex, dialect, index)
}

/** MySQL commits each statement that changes a table. */
function together(knex: Knex, work: (db: Knex) => Promise<void>): Promise<void> {
  return knex.isTransaction ? work(knex) : knex.transaction(work)
}

function down(knex: Knex, version: Version, hostTables: HostTables): Promise<void> {
  const dialect = dialectOf(knex)
  return together(knex, async (db) => {
    for (const { name, table } of addedIndexes(version, hostTables, dialect))
      if (await dialect.hasIndex(db, table, name))
        await db.raw(dialect.indexesInTable ? `drop index ${name} on ${table}` : `drop index if exists ${name}`)
    for (const { table, name } of ownColumns(version, hostTables))
      if (await dialect.columnType(db, databaseName(db, table), databaseName(db, name)))
        await db.raw(`alter table ${table} drop column ${name}`)
    for (const { name } of ownTables(version, hostTables).toReversed()) await db.schema.dropTableIfExists(name)
  })
}

async function makeTables(db: Queryable, dialect: Dialect, version: Version, hostTables: HostTables): Promise<void> {
  const [options, users] = [await dialect.tableOptions(db), await usersOf(db, dialect, hostTables)]
  for (const table of ownTables(version, hostTables))
    if (!(await dialect.hasTable(db, databaseName(db, table.name))))
      for (const statement of statements(table, dialect, users, options)) await db.raw(statement)
  const { columns } = await missingOf({ knex: db, dialect, hostTables }, version)
  for (const column of columns) await addColumn(db, dialect, column)
}

/** SQLite has no schema lock, so another process can add the column at the same time. */
function addColumn(db: Queryable, dialect: Dialect, column: AddedColumn): Promise<void> {
  const isThere = async () => (await dialect.columnType(db, databaseName(db, column.table), databaseName(db, column.name))) !== null
  return untilDone(isThere, () => db.raw(addedColumn(column, dialect)))
}

export function addedColumn({ table, name, type }: AddedColumn, dialect: Dialect): string {
  return `alter table ${table} add column ${name} ${type(dialect.types)}`
}

export async function usersOf(db: Queryable, dialect: Dialect, { users }: HostTables): Promise<UsersKey> {
  if (!users) return { table: 'auth_users', key: 'id', type: dialect.types.id }
  const { name, key } = hostUsers(db, dialect, users)
  const type = await dialect.columnType(db, databaseName(db, name), databaseName(db, key))
  const quoted = (identifier: string) => db.raw('??', [identifier]).toQuery()
  if (type) return { table: quoted(name), key: quoted(key), type }
  const { kind } = await dialect.readTable(db, databaseName(db, name))
  const problem =
    kind === 'missing'
      ? `there is no table ${name} yet, so the other tables cannot refer to ${name}.${key}; create your own users table first, or name it in \`users.table\``
      : `the table ${name} has no column ${key}; name its key in \`users.columns.id\``
  throw new ConfigurationError(`createAuthTables(): ${problem}.`)
}

function hostUsers(db: Queryable, dialect: Dialect, users: NonNullable<HostTables['users']>): { name: string; key: string } {
  const table = bindTables(db, dialect, { users }).users
  return { name: table.name, key: table.bareColumn('id') }
}

export function statements(table: TableSchema, dialect: Dialect, users: UsersKey, options: string): readonly string[] {
  const { name, columns, constraints } = table
  const indexes = indexesOf(table, dialect)
  const inside = dialect.indexesInTable ? indexes.map((index) => `index ${index.name} (${index.columns})`) : []
  const lines = [...columns(dialect.types, users.type), ...constraints(`${users.table} (${users.key})`), ...inside]
  const after = dialect.indexesInTable ? [] : indexes
  return [
    `create table if not exists ${name} (\n  ${lines.join(',\n  ')}\n) ${options}`.trimEnd(),
    ...after.map((index) => `create index if not exists ${index.name} on ${name} (${index.columns})`),
  ]
}

/** On PostgreSQL and outside of a transaction, other clients can write to the table meanwhile. */
async function addIndex(connection: Connection, index: AddedIndex, { isInTransaction }: { isInTransaction: boolean }): Promise<void> {
  const { dialect } = connection
  const isConcurrent = await connection.statement('createAuthTables', (db) => canBuildConcurrently(db, dialect, index, isInTransaction))
  const build = (db: Queryable) => buildIndex(db, dialect, index)
  if (isConcurrent || !dialect.withSchemaLock) await connection.statement('createAuthTables', build)
  else await connection.together('createAuthTables', async (db) => dialect.withSchemaLock?.(db, () => build(db)))
}

async function canBuildConcurrently(db: Queryable, dialect: Dialect, { table }: AddedIndex, isInTransaction: boolean): Promise<boolean> {
  if (isInTransaction || !dialect.buildsIndexesConcurrently) return false
  return (await db(table).select(db.raw('1')).limit(1)).length > 0
}

async function buildIndex(db: Queryable, dialect: Dialect, index: AddedIndex): Promise<void> {
  const { name, table, columns, where } = index
  const isConcurrent = await canBuildConcurrently(db, dialect, index, db.isTransaction === true)
  const isThere = () => dialect.hasIndex(db, table, name)
  if (isConcurrent) {
    await untilDone(isThere, async () => {
      // An interrupted build leaves an unusable index, so the index is dropped first.
      await db.raw(`drop index concurrently if exists ${name}`)
      await db.raw(`create index concurrently if not exists ${name} on ${table} (${columns})${conditionOf(where)}`)
    })
    return
  }
  const ifMissing = dialect.indexesInTable ? '' : 'if not exists ' // MySQL does not support `if not exists`, but has the schema lock
  if (!(await isThere())) await db.raw(`create index ${ifMissing}${name} on ${table} (${columns})${conditionOf(where)}`)
}

const mostAttempts = 5

/** If two processes change one index at once, the database ends the work of one. That process checks again a moment later. */
async function untilDone(isDone: () => Promise<boolean>, work: () => PromiseLike<unknown>): Promise<void> {
  for (let attempts = 1; !(await isDone()); attempts++) {
    try {
      await work()
      return
    } catch (error) {
      if (attempts === mostAttempts) throw error
      await sleep(randomInt(100, 1_000))
    }
  }
}

export function conditionOf(where: string | undefined): string {
  return where ? ` where ${where}` : ''
}
