import type { Knex } from 'knex'
import type { TableFacts } from './check/table-facts'
import type { Queryable, Row, Statement } from './queryable'

/** Closes the connection of a transaction while a statement is under way on it. */
export type Close = () => Promise<void>

export interface Dialect {
  readonly name: 'postgresql' | 'sqlite' | 'mysql'
  /** WITH may contain INSERT and UPDATE, so a method with several writes needs only one round trip. */
  readonly writesInWith: boolean
  readonly returning: boolean
  readonly least: 'least' | 'min'
  /** SELECT ... FOR UPDATE exists. Otherwise the store locks a row by an UPDATE of the row. */
  readonly rowLocks: boolean
  /** False: the host may have set the connection to count only changed rows. */
  readonly countsMatchedRows: boolean
  /** Compares a text column (`??`) byte for byte, for statements with RETURNING. Null: the store compares the rows in code. */
  readonly exactText: string | null
  readonly types: ColumnTypes
  instantToColumn(instant: Date): string | number
  /** How SELECT reads an instant (`??` is the column). Null: the driver returns the column correctly. */
  readonly instantExpression: string | null
  /** Reads an integer key as text, because a JavaScript number loses digits above 2^53. Null: the driver returns the key correctly. */
  readonly integerKeyExpression: string | null
  booleanToColumn(value: boolean): boolean | number
  /** One bound parameter. All rows have the same column names. Returns `column` of the inserted rows. Null: no such statement. */
  readonly insertFree: null | ((db: Queryable, table: string, rows: readonly Row[], column: string) => Promise<string[]>)
  run(db: Queryable, statement: Statement): Promise<Row[]>
  /** A statement with a name is planned once for each connection. The store names statements in its own transactions too. */
  readonly namesStatements: boolean
  readonly transaction: Knex.TransactionConfig
  /**
   * Makes a new transaction of Knex begin so that the database ends each statement, also one that waits for a lock, soon after the
   * deadline. Null: this database has no such limit, or this Knex cannot begin so.
   */
  readonly beginWithin: null | ((transaction: object, deadline: { remainingMs(): number | null }) => Close | null)
  /** Sent before the first statement, unless the first statement is a guarded change. */
  readonly beforeRead: readonly string[]
  readonly beforeCommit: readonly string[]
  /** On PostgreSQL, two CREATE ... IF NOT EXISTS at once fail with a duplicate key. Null: the statements need no lock. */
  readonly withSchemaLock: null | ((db: Queryable, work: () => Promise<void>) => Promise<void>)
  /** @throws ConfigurationError when the server is too old */
  tableOptions(db: Queryable): Promise<string>
  /** The type that a foreign key to this column must have. Null: the column does not exist. */
  columnType(db: Queryable, table: string, column: string): Promise<string | null>
  /** True if this connection may read the rows and delete them. Never breaks an open transaction. */
  mayUse(db: Queryable, table: string): Promise<boolean>
  /** Sends one query. `table` is the table's name in the database. */
  readTable(db: Queryable, table: string): Promise<TableFacts>
  /** MySQL needs this, because its CREATE INDEX has no IF NOT EXISTS. */
  readonly indexesInTable: boolean
  readonly buildsIndexesConcurrently: boolean
  /** Also finds a view. Works while another process drops the table, when `readTable` fails with XX000 on PostgreSQL. */
  hasTable(db: Queryable, table: string): Promise<boolean>
  /** An index that another process is building now counts too. */
  hasIndex(db: Queryable, table: string, index: string): Promise<boolean>
  /** Reads a timestamp (`??`) with every digit, in a form that WHERE accepts. Null: SELECT reads the column itself. */
  readonly exactInstantExpression: string | null
  /** A filtered list first selects the ids from an index alone, and then the rows of these ids. */
  readonly listsIdsFirst: boolean
  /** `(a, b) > (x, y)` uses an index. Otherwise the store compares column by column. */
  readonly comparesRows: boolean
  readonly text: TextConditions
}

/**
 * Compare `:column:` with `:value` byte for byte. LIKE has wildcards, and ignores case in SQLite. For an index, `startswith` has `:after`,
 * the first text after all texts that begin with the value (or null). It also has `:prefix`, a pattern of LIKE with `|` before its
 * wildcards.
 */
export interface TextConditions {
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
  /** A primary key of 64 bits that counts up and is never given again. */
  readonly sequence: string
  readonly bigint: string
  readonly text: string
  /** At most 255 characters. */
  readonly indexedText: string
  readonly boolean: string
  readonly instant: string
}
