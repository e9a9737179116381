import { ServiceUnavailableError } from '../../errors'
import { asciiLowerCase } from '../meets-filter'
import type { Statement } from './compile-once'
import type { Dialect } from './dialect'
import type { Queryable } from './queryable'
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
  // A unit that read first and wrote later would fail with SQLITE_BUSY_SNAPSHOT, or deadlock, whenever another process wrote in
  // between: it has to take the write lock at once.
  begin: () => ['BEGIN IMMEDIATE;'],
  unitConnection(connection) {
    const database = connection as SqliteConnection // what this driver's pool holds
    // Begun by a statement of the host's: it is not ours to roll back when our BEGIN is refused.
    if (database.inTransaction) throw new ServiceUnavailableError()
    return remembering(database)
  },
  // After some failures SQLite has rolled back by itself; after a COMMIT refused with SQLITE_BUSY it has not.
  mayBeOpen: (connection) => (connection as SqliteConnection).inTransaction !== false, // as above
  endsTransaction: () => false, // `mayBeOpen` knows
  checkCommit() {},
  endByForce,
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

/**
 * better-sqlite3 compiles a text whenever it is asked to, and knex asks each time; for such a statement that takes longer
 * than running it. A unit of ours has a connection that remembers; a transaction of the host's insists on its own
 * connection object, and compiles.
 */
async function runRemembered(db: Queryable, { sql, bindings }: Statement): Promise<Row[]> {
  if (db.isTransaction) return db.raw(sql, bindings)
  const connection: SqliteConnection = await db.client.acquireConnection()
  try {
    return await db.raw(sql, bindings).connection(remembering(connection))
  } finally {
    db.client.releaseConnection(connection)
  }
}

/** To close it would be to lose a database that is in memory; and what fails on the way through knex need not fail here. */
function endByForce(connection: unknown): boolean {
  const database = connection as SqliteConnection // as above
  try {
    if (database.inTransaction !== false) database.exec('ROLLBACK')
    return true
  } catch {
    database.close()
    return false
  }
}

/** Some verbs have as many texts as there are lengths of a list: where too many came together, all are prepared anew. */
const mostPrepared = 200

const rememberingOnes = new WeakMap<SqliteConnection, SqliteConnection>()

/** The same connection to knex, but that a text becomes a statement once: preparing one takes SQLite as long as running it. */
function remembering(connection: SqliteConnection): SqliteConnection {
  const known = rememberingOnes.get(connection)
  if (known) return known
  const prepared = new Map<string, unknown>()
  const prepare = (sql: string) => {
    const statement = prepared.get(sql) ?? connection.prepare(sql)
    if (prepared.size >= mostPrepared) prepared.clear()
    prepared.set(sql, statement)
    return statement
  }
  const wrapped: SqliteConnection = Object.create(connection, { prepare: { value: prepare } })
  rememberingOnes.set(connection, wrapped)
  return wrapped
}

/** better-sqlite3's Database, as far as it is used here. */
interface SqliteConnection {
  readonly inTransaction: boolean
  exec(sql: string): unknown
  close(): unknown
  prepare(sql: string): unknown
}
