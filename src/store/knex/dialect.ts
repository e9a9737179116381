import type { Knex } from 'knex'
import type { TableFacts } from './check/table-facts'
import type { Queryable, Row, Statement } from './queryable'

/** Everything that differs between databases. */
export interface Dialect {
  readonly name: 'postgresql' | 'sqlite' | 'mysql'
  /** INSERT and UPDATE inside WITH: several writes of one verb in one round trip. */
  readonly writesInWith: boolean
  /** INSERT and UPDATE ... RETURNING. */
  readonly returning: boolean
  /** The function that gives the smaller of two values. */
  readonly least: 'least' | 'min'
  /** SELECT ... FOR UPDATE; without it a row is held by writing it. */
  readonly rowLocks: boolean
  /** An UPDATE counts the rows it found. False: a connection may be set to count only those it changed. */
  readonly countsMatchedRows: boolean
  /** A text column (`??`) compared byte for byte whatever its collation, for `returning`; else what is read is compared in code. */
  readonly exactText: string | null
  readonly types: ColumnTypes
  instantToColumn(instant: Date): string | number
  /** How SELECT asks for an instant (`??` is the column); null: the driver returns the column right as it is. */
  readonly instantExpression: string | null
  /** The same for an integer key, which as a JavaScript number would lose digits past 2^53. */
  readonly integerKeyExpression: string | null
  booleanToColumn(value: boolean): boolean | number
  /**
   * Inserts many rows that have the same columns (the database's names) by a statement of one binding, leaves out those that a unique rule
   * refuses, and returns `column` of the others. Null: the database has no such statement.
   */
  readonly insertFree: null | ((db: Queryable, table: string, rows: readonly Row[], column: string) => Promise<string[]>)
  /** The rows that a compiled statement returns. */
  run(db: Queryable, statement: Statement): Promise<Row[]>
  /** How Knex begins a unit of work: at READ COMMITTED. */
  readonly transaction: Knex.TransactionConfig
  /** What is sent in a unit before its work. */
  readonly afterBegin: readonly string[]
  /** What is sent in a unit after its work, before Knex commits. */
  readonly beforeCommit: readonly string[]
  /**
   * Runs `work` on one connection while no second process creates tables; null where CREATE ... IF NOT EXISTS is safe
   * by itself (on PostgreSQL two at once end in a duplicate key of the catalogue).
   */
  readonly withSchemaLock: null | ((db: Queryable, work: () => Promise<void>) => Promise<void>)
  /** What stands behind the columns of CREATE TABLE. @throws ConfigurationError when the server is too old */
  tableOptions(db: Queryable): Promise<string>
  /** The column's type, as CREATE TABLE wants it for a foreign key that refers to it; null: there is no such column. */
  columnType(db: Queryable, table: string, column: string): Promise<string | null>
  /** What the catalogue says of a table, in one query. The name is the database's own. */
  readTable(db: Queryable, table: string): Promise<TableFacts>
  /** Secondary indexes as part of CREATE TABLE, which alone has IF NOT EXISTS everywhere. */
  readonly indexesInTable: boolean
  /** CREATE INDEX CONCURRENTLY, outside of a transaction. */
  readonly buildsIndexesConcurrently: boolean
  /** Whether the table has an index of that name that can be used, or that another process builds now. */
  hasIndex(db: Queryable, table: string, index: string): Promise<boolean>
  /** How SELECT asks for an instant (`??`) as exact as the column has it, in a form WHERE takes; null: as it is. */
  readonly exactInstantExpression: string | null
  /** A filtered list asks for ids first, which an index answers alone, and then for their rows. */
  readonly listsIdsFirst: boolean
  /** `(a, b) > (x, y)` goes along an index; else it is written out. */
  readonly comparesRows: boolean
  readonly text: TextConditions
}

/**
 * Conditions on a text `:column:`, byte for byte whatever its collation, with `:value`. Functions rather than LIKE, which
 * has wildcards, and ignores case on SQLite. `startswith` has more bindings, for what an index serves: `:after`, the first text behind all
 * that begin with the value, or null; `:prefix`, the value as a pattern of LIKE, with `|` before its wildcards.
 */
export interface TextConditions {
  /** The two sides of a comparison. */
  readonly column: string
  readonly value: string
  readonly contains: string
  readonly startswith: string
  readonly endswith: string
  /** ASCII letters only; the value has to be what `foldedValue` makes of it. */
  readonly icontains: string
  foldedValue(value: string): string
}

export interface ColumnTypes {
  readonly id: string
  /** In CAST. */
  readonly bigint: string
  readonly text: string
  readonly boolean: string
  readonly instant: string
}
