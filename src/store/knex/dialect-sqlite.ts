import { asciiLowerCase } from '../../core/ascii-lower-case'
import { readSqliteTable } from './check/read-sqlite'
import type { Dialect } from './dialect'

export const sqlite: Dialect = {
  name: 'sqlite',
  writesInWith: false,
  insertFree: null,
  returning: true,
  least: 'min',
  rowLocks: false,
  countsMatchedRows: true,
  exactText: '?? = ? collate binary',
  types: { id: 'varchar(36)', bigint: 'integer', text: 'text', indexedText: 'text', boolean: 'boolean', instant: 'integer' },
  instantToColumn: (instant) => instant.getTime(),
  instantExpression: null,
  integerKeyExpression: 'cast(?? as text)',
  run: async (db, { sql, bindings }) => db.raw(sql, bindings),
  booleanToColumn: (value) => (value ? 1 : 0),
  transaction: {},
  // Knex begins a transaction without the write lock, so these statements begin it again with the write lock. Otherwise a transaction could
  // read first and write later. If another process wrote in between, the transaction would fail with SQLITE_BUSY_SNAPSHOT, or deadlock. A
  // transaction that writes first has the write lock from its first statement.
  beforeRead: ['COMMIT;', 'BEGIN IMMEDIATE;'],
  // SQLite may refuse a COMMIT and stay in the transaction. Knex would return the connection to its pool in that state. So we commit first,
  // and Knex then commits an empty transaction.
  beforeCommit: ['COMMIT;', 'BEGIN;'],
  withSchemaLock: null,
  tableOptions: async () => '',
  async columnType(db, table, column) {
    const [found] = await db.raw('select type from pragma_table_info(?) where name = ?', [table, column])
    return found ? found.type || 'blob' : null
  },
  mayUse: async (db, table) => (await readSqliteTable(db, table)).kind !== 'missing',
  readTable: readSqliteTable,
  indexesInTable: false,
  buildsIndexesConcurrently: false,
  async hasTable(db, table) {
    return (await db.raw("select 1 from sqlite_master where type in ('table', 'view') and name = ?", [table])).length > 0
  },
  async hasIndex(db, table, index) {
    const found = await db.raw("select 1 from sqlite_master where type = 'index' and tbl_name = ? and name = ?", [table, index])
    return found.length > 0
  },
  exactInstantExpression: null,
  listsIdsFirst: true,
  comparesRows: true,
  // instr() and substr() ignore collations. lower() changes only ASCII letters.
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
