import type { Knex } from 'knex'
import type { TableFacts } from './check/table-facts'
import type { Queryable, Row, Statement } from './queryable'

/** The differences between databases. */
export interface Dialect {
  readonly name: 'postgresql' | 'sqlite' | 'mysql'
  /** True if WITH may contain INSERT and UPDATE, so that a method of several writes needs one round trip. */
  readonly writesInWith: boolean
  /** True if INSERT and UPDATE support RETURNING. */
  readonly returning: boolean
  /** The function that returns the smaller of two values. */
  readonly least: 'least' | 'min'
  /** True if SELECT ... FOR UPDATE exists. Otherwise a row is locked by an UPDATE of it. */
  readonly rowLocks: boolean
  /** True if an UPDATE counts the rows it matched. False: a connection may be set to count only the rows it changed. */
  readonly countsMatchedRows: boolean
  /**
   * Compares a text column (`??`) byte for byte in every collation, for statements with RETURNING. Null: the rows are read and compared in
   * code.
   */
  readonly exactText: string | null
  readonly types: ColumnTypes
  instantToColumn(instant: Date): string | number
  /** How SELECT reads an instant (`??` is the column). Null: the driver returns the column correctly. */
  readonly instantExpression: string | null
  /** How SELECT reads an integer key, because a JavaScript number loses digits above 2^53. Null: the driver returns it correctly. */
  readonly integerKeyExpression: string | null
  booleanToColumn(value: boolean): boolean | number
  /**
   * Inserts many rows with the same columns (named as in the database) by a statement with one binding for all values. Skips rows that a
   * unique rule refuses, and returns `column` of the others. Null: the database has no such statement.
   */
  readonly insertFree: null | ((db: Queryable, table: string, rows: readonly Row[], column: string) => Promise<string[]>)
  /** Runs a compiled statement and returns its rows. */
  run(db: Queryable, statement: Statement): Promise<Row[]>
  /** How Knex begins a transaction: at READ COMMITTED. */
  readonly transaction: Knex.TransactionConfig
  /** Statements that a transaction sends before its work. */
  readonly afterBegin: readonly string[]
  /** Statements that a transaction sends after its work, before Knex commits. */
  readonly beforeCommit: readonly string[]
  /**
   * Runs `work` on one connection while no other process creates tables. Null if CREATE ... IF NOT EXISTS is safe by itself. In PostgreSQL,
   * two at the same time fail with a duplicate key in the catalogue.
   */
  readonly withSchemaLock: null | ((db: Queryable, work: () => Promise<void>) => Promise<void>)
  /** Returns the text after the columns of CREATE TABLE. @throws ConfigurationError when the server is too old */
  tableOptions(db: Queryable): Promise<string>
  /** Returns the column's type in the form that CREATE TABLE needs for a foreign key to it. Null: there is no such column. */
  columnType(db: Queryable, table: string, column: string): Promise<string | null>
  /** Returns true if the table exists, and this connection may read its rows and delete them. Nothing of it ends a transaction. */
  mayUse(db: Queryable, table: string): Promise<boolean>
  /** Reads the catalogue's facts about a table, in one query. `table` is the name as the database has it. */
  readTable(db: Queryable, table: string): Promise<TableFacts>
  /** True if secondary indexes are part of CREATE TABLE, because only CREATE TABLE has IF NOT EXISTS in every version. */
  readonly indexesInTable: boolean
  /** True if CREATE INDEX CONCURRENTLY exists, for use outside of a transaction. */
  readonly buildsIndexesConcurrently: boolean
  /** Returns true if the table has a usable index of that name, or another process is building it now. */
  hasIndex(db: Queryable, table: string, index: string): Promise<boolean>
  /** How SELECT reads an instant (`??`) as exactly as the column stores it, in a form that WHERE accepts. Null: the column itself. */
  readonly exactInstantExpression: string | null
  /** True if a filtered list first selects ids, which an index alone answers, and then their rows. */
  readonly listsIdsFirst: boolean
  /** True if `(a, b) > (x, y)` uses an index. Otherwise the comparison is written column by column. */
  readonly comparesRows: boolean
  readonly text: TextConditions
}

/**
 * Conditions that compare a text `:column:` with `:value` byte for byte in every collation. They use functions, because LIKE has wildcards,
 * and ignores case in SQLite. `startswith` has two more bindings for an index. `:after` is the first text after all texts that begin with
 * the value, or null. `:prefix` is the value as a pattern of LIKE, with `|` before its wildcards.
 */
export interface TextConditions {
  /** The two sides of a comparison. */
  readonly column: string
  readonly value: string
  readonly contains: string
  readonly startswith: string
  readonly endswith: string
  /** Ignores the case of ASCII letters only. The value must be a result of `foldedValue`. */
  readonly icontains: string
  foldedValue(value: string): string
}

export interface ColumnTypes {
  readonly id: string
  /** The type's name in CAST. */
  readonly bigint: string
  readonly text: string
  readonly boolean: string
  readonly instant: string
}
