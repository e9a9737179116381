import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { AuthStore } from '../auth-store'
import type { CheckedTables } from './check/check-store-tables'
import { poolConnection } from './connection'
import { checkedTablesOf } from './knex-store'
import { addedColumn, conditionOf, createAuthTables, statements, usersOf } from './schema'
import { missingOf, pendingVersions, VERSIONS, type Version } from './schema-versions'

/** doorward reads the state from the tables themselves, because a host can make the tables in several ways. */
export interface MigrationState {
  readonly name: string
  readonly state: 'done' | 'pending'
}

export interface MigrationRun {
  readonly done: readonly string[]
  readonly tookLock: boolean
}

export interface Migrations {
  status(): Promise<MigrationState[]>
  /** Records the versions in knex's table `table`. Writes nothing if nothing is missing. Waits for a run with knex's lock of `table`. */
  up(table: string): Promise<MigrationRun>
  sql(): Promise<string[]>
}

export function migrationsOf(store: AuthStore, second: () => Promise<unknown> = () => sleep(1_000)): Migrations | null {
  const checked = checkedTablesOf(store)
  if (!checked) return null
  const { knex, hostTables } = checked
  return {
    async status() {
      const missing = await pendingVersions(checked)
      return VERSIONS.map((version) => ({ name: version.name, state: missing.includes(version) ? 'pending' : 'done' }))
    },
    async up(tableName) {
      if ((await pendingVersions(checked)).length === 0 && (await isRecorded(knex, tableName))) return { done: [], tookLock: false }
      const tookLock = await awaitLock(knex, tableName, second)
      const missing = await pendingVersions(checked)
      await createAuthTables(knex, hostTables)
      await makeRecord(checked, tableName)
      await knex.migrate.latest({ migrationSource: recordsAlone, tableName })
      return { done: missing.map(({ name }) => name), tookLock }
    },
    sql: async () => (await Promise.all((await pendingVersions(checked)).map((version) => sqlOf(checked, version)))).flat(),
  }
}

/** A missing table needs no rows, because only a run that makes tables records them. */
async function isRecorded(knex: Knex, tableName: string): Promise<boolean> {
  if (!(await knex.schema.hasTable(tableName))) return true
  const recorded: unknown[] = await knex(tableName).pluck('name')
  return VERSIONS.every(({ name }) => recorded.includes(name))
}

const mostSeconds = 60

/** Knex stores no time of a lock: after a minute without a new migration, the run counts as killed. @returns true if it freed the lock */
async function awaitLock(knex: Knex, tableName: string, second: () => Promise<unknown>): Promise<boolean> {
  if (!(await knex.schema.hasTable(lockOf(tableName)))) return false
  let last = -1
  for (let seconds = 0; seconds < mostSeconds; seconds++) {
    if ((await knex(lockOf(tableName)).where({ is_locked: 1 }).select(knex.raw('1'))).length === 0) return false
    const recorded = (await knex(tableName).pluck('name')).length
    if (recorded !== last) seconds = 0
    last = recorded
    await second()
  }
  await knex.migrate.forceFreeMigrationsLock({ tableName })
  return true
}

function lockOf(tableName: string): string {
  return `${tableName}_lock`
}

/** Knex fails if two processes make its two tables at once. */
function makeRecord({ knex, dialect }: CheckedTables, tableName: string): Promise<void> {
  const lock = dialect.withSchemaLock ?? ((_db, work) => work())
  return poolConnection(knex, dialect).together('migrate', (db) => lock(db, () => makeRecordTables(db as Knex, tableName))) // the whole knex
}

async function makeRecordTables(db: Knex, tableName: string): Promise<void> {
  if (!(await db.schema.hasTable(tableName)))
    await db.schema.createTable(tableName, (table) => {
      table.increments()
      table.string('name')
      table.integer('batch')
      table.timestamp('migration_time')
    })
  if (!(await db.schema.hasTable(lockOf(tableName))))
    await db.schema.createTable(lockOf(tableName), (table) => {
      table.increments('index').primary()
      table.integer('is_locked')
    })
  if (!(await db(lockOf(tableName)).first('is_locked'))) await db(lockOf(tableName)).insert({ is_locked: 0 })
}

/** Only records the names of the versions. The tables exist already. */
const recordsAlone: Knex.MigrationSource<Version> = {
  getMigrations: async () => [...VERSIONS],
  getMigrationName: ({ name }) => name,
  getMigration: async () => ({ up: async () => {}, down: async () => {} }),
}

async function sqlOf(checked: CheckedTables, version: Version): Promise<string[]> {
  const { knex, dialect, hostTables } = checked
  const [options, users] = [await dialect.tableOptions(knex), await usersOf(knex, dialect, hostTables)]
  const missing = await missingOf(checked, version)
  return [
    ...missing.tables.flatMap((table) => statements(table, dialect, users, options)),
    ...missing.columns.map((column) => addedColumn(column, dialect)),
    ...missing.indexes.map(({ name, table, columns, where }) => `create index ${name} on ${table} (${columns})${conditionOf(where)}`),
  ]
}
