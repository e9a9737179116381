import type { Knex } from 'knex'
import type { AuthStore } from '../auth-store'
import type { CheckedTables } from './check/check-store-tables'
import { databaseName } from './database-name'
import { checkedTablesOf } from './knex-store'
import { addedIndexes, conditionOf, createAuthTables, narrowedColumns, ownTables, statements, usersOf, withoutReplaced } from './schema'
import { VERSIONS } from './schema-versions'
import type { Version } from './version'

/** A version of the schema. doorward reads the state from the tables themselves, because a host can make the tables in several ways. */
export interface MigrationState {
  readonly name: string
  readonly state: 'done' | 'pending'
}

/** Updates the tables of a store to the newest version. */
export interface Migrations {
  status(): Promise<MigrationState[]>
  /**
   * Makes the missing tables and indexes, narrows columns, and moves rows. Records every version in knex's migrations table `table`.
   * @returns the versions that were pending
   */
  up(table: string): Promise<string[]>
  /** Returns the SQL of the pending versions. If a version also moves rows, a comment says so. */
  sql(): Promise<string[]>
}

/** Returns the migrations of a knex store. Null: the store is an adapter of the host. */
export function migrationsOf(store: AuthStore): Migrations | null {
  const checked = checkedTablesOf(store)
  if (!checked) return null
  const { knex, hostTables } = checked
  const pending = async () => {
    const states = await Promise.all(VERSIONS.map(async (version) => ({ version, isDone: await isDone(checked, version) })))
    return states.flatMap(({ version, isDone }) => (isDone ? [] : [version]))
  }
  return {
    async status() {
      const missing = await pending()
      return VERSIONS.map((version) => ({ name: version.name, state: missing.includes(version) ? 'pending' : 'done' }))
    },
    async up(tableName) {
      const missing = await pending()
      await createAuthTables(knex, hostTables)
      await knex.migrate.latest({ migrationSource: recordsAlone, tableName })
      return missing.map(({ name }) => name)
    },
    sql: async () => (await Promise.all((await pending()).map((version) => sqlOf(checked, version)))).flat(),
  }
}

/** The source for a run of knex that only records the names of the versions in knex's migrations table. The tables exist already. */
const recordsAlone: Knex.MigrationSource<Version> = {
  getMigrations: async () => [...VERSIONS],
  getMigrationName: ({ name }) => name,
  getMigration: async () => ({ up: async () => {}, down: async () => {} }),
}

async function isDone({ knex, dialect, hostTables }: CheckedTables, version: Version): Promise<boolean> {
  const exists = async (name: string) => (await dialect.readTable(knex, databaseName(knex, name))).kind !== 'missing'
  const made = ownTables(withoutReplaced(version), hostTables)
  for (const { name } of made) if (!(await exists(name))) return false
  const isMoved = version.move && hostTables[version.move.record] === undefined
  const replaced = isMoved ? version.move.replaces.filter((name) => !made.some((table) => table.name === name)) : []
  for (const name of replaced) if (await exists(name)) return false
  for (const { table, column, from } of narrowedColumns(version, hostTables, dialect))
    if ((await dialect.columnType(knex, table, column))?.split(' ', 1)[0] === from) return false
  for (const { table, name } of addedIndexes(version, hostTables, dialect)) if (!(await dialect.hasIndex(knex, table, name))) return false
  return true
}

async function sqlOf({ knex, dialect, hostTables }: CheckedTables, version: Version): Promise<string[]> {
  const [options, users] = [await dialect.tableOptions(knex), await usersOf(knex, dialect, hostTables)]
  const tables = ownTables(withoutReplaced(version), hostTables).flatMap((table) => statements(table, dialect, users, options))
  const indexes = addedIndexes(version, hostTables, dialect).map(
    ({ name, table, columns, where }) => `create index ${name} on ${table} (${columns})${conditionOf(where)}`,
  )
  const moves =
    version.move && hostTables[version.move.record] === undefined
      ? [`-- ${version.name} also moves rows. Only \`migrate up\` moves the rows`]
      : []
  const narrowed = narrowedColumns(version, hostTables, dialect).map(
    ({ table, column, characters }) => `alter table ${table} modify ${column} varchar(${characters})`,
  )
  return [...moves, ...tables, ...narrowed, ...indexes]
}
