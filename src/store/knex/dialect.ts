import type { Knex } from 'knex'
import { ConfigurationError } from '../../errors'

/** Everything that differs between databases. */
export interface Dialect {
  readonly name: 'postgresql' | 'sqlite'
  /** INSERT and UPDATE inside WITH: several writes of one verb in one round trip. */
  readonly writesInWith: boolean
  /** SELECT ... FOR UPDATE; without it a row is held by writing it. */
  readonly rowLocks: boolean
  readonly types: ColumnTypes
  instantToColumn(instant: Date): string | number
  booleanToColumn(value: boolean): boolean | number
  /** Runs `work` in a new transaction. */
  transaction<T>(knex: Knex, work: (trx: Knex.Transaction) => Promise<T>): Promise<T>
  /**
   * Keeps a second process from creating tables until the transaction ends; null where CREATE ... IF NOT EXISTS is
   * safe by itself (on PostgreSQL two at once end in a duplicate key of the catalogue).
   */
  readonly schemaLock: string | null
}

export interface ColumnTypes {
  readonly id: string
  readonly text: string
  readonly boolean: string
  readonly instant: string
}

/** @throws ConfigurationError for a client this store was not tested with */
export function dialectOf(knex: Knex): Dialect {
  if (typeof knex !== 'function')
    throw new ConfigurationError('createKnexStore() needs `knex`: the instance knex({ client, ... }) returns.')
  const { dialect, driverName }: { dialect?: unknown; driverName?: unknown } = knex.client
  const found = DIALECTS.get(`${String(dialect)}/${String(driverName)}`)
  if (found) return found
  throw new ConfigurationError(
    `createKnexStore() does not support the knex client "${String(driverName ?? dialect)}"; create knex with client: 'pg' or 'better-sqlite3'.`,
  )
}

const postgresql: Dialect = {
  name: 'postgresql',
  writesInWith: true,
  rowLocks: true,
  types: { id: 'uuid', text: 'text', boolean: 'boolean', instant: 'timestamptz(3)' },
  // Text with its zone: the driver would write local time, right only as long as process and offset agree.
  instantToColumn: (instant) => instant.toISOString(),
  booleanToColumn: (value) => value,
  transaction: (knex, work) => knex.transaction(work, { isolationLevel: 'read committed' }),
  // The number is arbitrary; it only has to be the same in every version of this library.
  schemaLock: 'select pg_advisory_xact_lock(7303917261)',
}

const sqlite: Dialect = {
  name: 'sqlite',
  writesInWith: false,
  rowLocks: false,
  types: { id: 'varchar(36)', text: 'text', boolean: 'boolean', instant: 'integer' },
  instantToColumn: (instant) => instant.getTime(),
  booleanToColumn: (value) => (value ? 1 : 0),
  transaction: sqliteTransaction,
  schemaLock: null,
}

async function sqliteTransaction<T>(knex: Knex, work: (trx: Knex.Transaction) => Promise<T>): Promise<T> {
  const connection: SqliteConnection = await knex.client.acquireConnection()
  try {
    return await knex.transaction(work, { connection: beginningImmediately(connection) })
  } finally {
    // A COMMIT refused with SQLITE_BUSY leaves the transaction open, and knex would hand the connection on like that.
    if (connection.inTransaction) connection.exec('ROLLBACK')
    knex.client.releaseConnection(connection)
  }
}

/**
 * A unit that read first and wrote later would fail with SQLITE_BUSY_SNAPSHOT, or deadlock, whenever another process
 * wrote in between: it has to take the write lock at once. knex knows no BEGIN IMMEDIATE, so its BEGIN becomes one on
 * the way to the driver.
 */
function beginningImmediately(connection: SqliteConnection): SqliteConnection {
  const prepare = (sql: string) => connection.prepare(sql === 'BEGIN;' ? 'BEGIN IMMEDIATE;' : sql)
  return Object.create(connection, { prepare: { value: prepare } })
}

/** better-sqlite3's Database, as far as it is used here. */
interface SqliteConnection {
  readonly inTransaction: boolean
  exec(sql: string): unknown
  prepare(sql: string): unknown
}

const DIALECTS: ReadonlyMap<string, Dialect> = new Map([
  ['postgresql/pg', postgresql],
  ['sqlite3/better-sqlite3', sqlite],
])
