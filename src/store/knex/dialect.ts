import type { Knex } from 'knex'
import type { TableFacts } from './check/table-facts'
import type { Queryable, Row, Statement } from './queryable'

/** The differences between databases. */
export interface Dialect {
  readonly name: 'postgresql' | 'sqlite' | 'mysql'
  /** True if WITH may contain INSERT and UPDATE. Then a method with several writes needs only one round trip. */
  readonly writesInWith: boolean
  /** True if INSERT and UPDATE support RETURNING. */
  readonly returning: boolean
  /** The function that returns the smaller of two values. */
  readonly least: 'least' | 'min'
  /** True if SELECT ... FOR UPDATE exists. Otherwise the store locks a row by an UPDATE of the row. */
  readonly rowLocks: boolean
  /** True if an UPDATE counts the rows that it matched. False: the host may have set the connection to count only changed rows. */
  readonly countsMatchedRows: boolean
  /**
   * The condition that compares a text column (`??`) byte for byte in every collation, for statements with RETURNING. Null: the store reads
   * the rows and compares them in code.
   */
  readonly exactText: string | null
  readonly types: ColumnTypes
  instantToColumn(instant: Date): string | number
  /** How SELECT reads an instant (`??` is the column). Null: the driver returns the column correctly. */
  readonly instantExpression: string | null
  /**
   * How SELECT reads an integer key as text, because a JavaScript number loses digits above 2^53. Null: the driver returns the key
   * correctly.
   */
  readonly integerKeyExpression: string | null
  booleanToColumn(value: boolean): boolean | number
  /**
   * Inserts many rows by one statement, which has one bound parameter for all values. Every row has the same keys: the column names in the
   * database. Skips rows that a unique rule refuses. Returns `column` of the inserted rows. Null: the database has no such statement.
   */
  readonly insertFree: null | ((db: Queryable, table: string, rows: readonly Row[], column: string) => Promise<string[]>)
  /** Runs a compiled statement and returns its rows. */
  run(db: Queryable, statement: Statement): Promise<Row[]>
  /** The options by which Knex begins a transaction at READ COMMITTED. */
  readonly transaction: Knex.TransactionConfig
  /** Statements that a transaction sends before its first statement, unless the first statement is a guarded change. */
  readonly beforeRead: readonly string[]
  /** Statements that a transaction sends after its work, before Knex commits. */
  readonly beforeCommit: readonly string[]
  /**
   * Runs `work` on one connection while no other process creates tables. In PostgreSQL, two CREATE ... IF NOT EXISTS at once fail with a
   * duplicate key in the catalogue. Null: CREATE ... IF NOT EXISTS needs no lock.
   */
  readonly withSchemaLock: null | ((db: Queryable, work: () => Promise<void>) => Promise<void>)
  /** Returns the text after the columns of CREATE TABLE. @throws ConfigurationError when the server is too old */
  tableOptions(db: Queryable): Promise<string>
  /** Returns the type that a foreign key to this column must have in CREATE TABLE. Null: the column does not exist. */
  columnType(db: Queryable, table: string, column: string): Promise<string | null>
  /** Returns true if the table exists, and this connection may read its rows and delete them. Never breaks an open transaction. */
  mayUse(db: Queryable, table: string): Promise<boolean>
  /** Reads the catalogue's facts about a table, in one query. `table` is the table's name in the database. */
  readTable(db: Queryable, table: string): Promise<TableFacts>
  /** True if CREATE TABLE also makes the secondary indexes. MySQL needs this, because its CREATE INDEX has no IF NOT EXISTS. */
  readonly indexesInTable: boolean
  /** True if CREATE INDEX CONCURRENTLY exists, for use outside of a transaction. */
  readonly buildsIndexesConcurrently: boolean
  /**
   * Returns true if the table or a view of that name exists. Unlike `readTable`, also works on PostgreSQL while another process drops the
   * table. `readTable` then fails with XX000.
   */
  hasTable(db: Queryable, table: string): Promise<boolean>
  /** Returns true if the table has a usable index of that name, or another process is building it now. */
  hasIndex(db: Queryable, table: string, index: string): Promise<boolean>
  /**
   * The SQL expression that reads a timestamp with every digit that the column stores. `??` stands for the column. WHERE accepts the
   * result. Null: SELECT reads the column itself.
   */
  readonly exactInstantExpression: string | null
  /** True if a filtered list first selects the ids from an index alone, and then the rows of these ids. */
  readonly listsIdsFirst: boolean
  /** True if `(a, b) > (x, y)` uses an index. Otherwise the store compares column by column. */
  readonly comparesRows: boolean
  readonly text: TextConditions
}

/**
 * Conditions that compare a text `:column:` with `:value` byte for byte in every collation. The conditions use functions, because LIKE has
 * wildcards, and LIKE ignores case in SQLite. `startswith` has two more bindings for an index. `:after` is the first text after all texts
 * that begin with the value, or null. `:prefix` is the value as a pattern of LIKE, with `|` before its wildcards.
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
  /** A text of at most 255 characters that may be part of an index. */
  readonly indexedText: string
  readonly boolean: string
  readonly instant: string
}
