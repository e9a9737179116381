import type { Knex } from 'knex'
import { asciiLowerCase } from '../meets-filter'
import type { Statement } from './compile-once'
import type { Dialect } from './dialect'
import type { Row } from './table'

export const sqlite: Dialect = {
  name: 'sqlite',
  writesInWith: false,
  returning: true,
  rowLocks: false,
  countsMatchedRows: true,
  exactText: '?? = ? collate binary',
  types: { id: 'varchar(36)', bigint: 'integer', text: 'text', boolean: 'boolean', instant: 'integer' },
  instantToColumn: (instant) => instant.getTime(),
  instantExpression: null,
  integerKeyExpression: 'cast(?? as text)',
  run: runRemembered,
  booleanToColumn: (value) => (value ? 1 : 0),
  transaction: sqliteTransaction,
  withSchemaLock: null,
  tableOptions: async () => '',
  async columnType(db, table, column) {
    const [found] = await db.raw('select type from pragma_table_info(?) where name = ?', [table, column])
    return found ? found.type || 'blob' : null
  },
  // Only the text of CREATE TABLE says which collation a column has.
  async looseColumns(db, table, columns) {
    const [found] = await db.raw("select sql from sqlite_master where type = 'table' and name = ?", [table])
    return columns.filter((column) => {
      const name = `["\`[]?${column.replace(/\W/g, '\\$&')}["\`\\]]?`
      return new RegExp(`[(,\\s]${name}\\s[^,]*collate\\s+["\`]?(nocase|rtrim)`, 'i').test(String(found?.sql))
    })
  },
  indexesInTable: false,
  hasIndex: async () => false,
  exactInstantExpression: null,
  comparesRows: true,
  // instr() and substr() know no collation; lower() knows ASCII only.
  text: {
    column: '(:column: collate binary)',
    value: ':value',
    contains: 'instr(:column:, :value) > 0',
    startswith: 'instr(:column:, :value) = 1',
    endswith: 'substr(:column:, length(:column:) - length(:value) + 1) = :value',
    icontains: 'instr(lower(:column:), :value) > 0',
    foldedValue: asciiLowerCase,
  },
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
 * better-sqlite3 compiles a text whenever it is asked to, and knex asks each time; for such a statement that takes longer
 * than running it. A transaction of the host's insists on its own connection object, and compiles.
 */
async function runRemembered(db: Knex, { sql, bindings }: Statement): Promise<Row[]> {
  if (db.isTransaction) return db.raw(sql, bindings)
  const connection: SqliteConnection = await db.client.acquireConnection()
  try {
    return await db.raw(sql, bindings).connection(remembering(connection))
  } finally {
    db.client.releaseConnection(connection)
  }
}

/** Some verbs have as many texts as there are lengths of a list: where too many came together, all are prepared anew. */
const mostPrepared = 200

/** Preparing a statement takes SQLite as long as running it. */
const remembering = oncePerConnection((connection) => {
  const prepared = new Map<string, unknown>()
  const prepare = (sql: string) => {
    const statement = prepared.get(sql) ?? connection.prepare(sql)
    if (prepared.size >= mostPrepared) prepared.clear()
    prepared.set(sql, statement)
    return statement
  }
  return preparingBy(connection, prepare)
})

/**
 * A unit that read first and wrote later would fail with SQLITE_BUSY_SNAPSHOT, or deadlock, whenever another process
 * wrote in between: it has to take the write lock at once. knex knows no BEGIN IMMEDIATE, so its BEGIN becomes one on
 * the way to the driver.
 */
const beginningImmediately = oncePerConnection((connection) => {
  const { prepare } = remembering(connection)
  return preparingBy(connection, (sql) => prepare(sql === 'BEGIN;' ? 'BEGIN IMMEDIATE;' : sql))
})

/** The same connection to knex, but for how a text becomes a statement. */
function preparingBy(connection: SqliteConnection, prepare: SqliteConnection['prepare']): SqliteConnection {
  return Object.create(connection, { prepare: { value: prepare } })
}

function oncePerConnection(wrap: (connection: SqliteConnection) => SqliteConnection): (connection: SqliteConnection) => SqliteConnection {
  const wrapped = new WeakMap<SqliteConnection, SqliteConnection>()
  return (connection) => {
    const wrapper = wrapped.get(connection) ?? wrap(connection)
    wrapped.set(connection, wrapper)
    return wrapper
  }
}

/** better-sqlite3's Database, as far as it is used here. */
interface SqliteConnection {
  readonly inTransaction: boolean
  exec(sql: string): unknown
  prepare(sql: string): unknown
}
