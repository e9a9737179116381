import type { HostTables } from './default-tables'
import type { ColumnTypes, Dialect } from './dialect'
import type { Queryable } from './queryable'

/** A version of the schema. A released version never changes: a later version alters the tables of an earlier version. */
export interface Version {
  readonly name: string
  readonly tables: readonly TableSchema[]
  /** Columns of tables of earlier versions that become narrower. */
  readonly narrowed?: readonly NarrowedColumn[]
  /** Indexes on tables of earlier versions. These tables may already have rows. */
  readonly indexes?: readonly AddedIndex[]
  /** Moves rows out of tables of earlier versions, and drops those tables. */
  readonly move?: Move
}

/**
 * The two steps that move rows from old tables to new tables. Both steps must be able to run again after an interruption, because MariaDB
 * commits each statement by itself.
 */
export interface Move {
  /** As in `TableSchema`. */
  readonly record: keyof HostTables
  /** Names of tables of earlier versions that the move drops or makes again. */
  readonly replaces: readonly string[]
  /** Runs before the version's own tables are made. */
  begin(db: Queryable, dialect: Dialect): Promise<void>
  /** Runs after the version's own tables are made. */
  finish(db: Queryable, dialect: Dialect, users: UsersKey, now: Date): Promise<void>
}

/** A text column that gets a maximum width, on databases where the column has the type `from`. The migration cuts longer values. */
export interface NarrowedColumn {
  readonly table: string
  /** As in `TableSchema`. */
  readonly record: keyof HostTables | null
  readonly column: string
  /** The type before the change. */
  readonly from: string
  readonly characters: number
}

export interface AddedIndex extends IndexSchema {
  /** The databases that need the index. Absent: all. */
  readonly on?: readonly Dialect['name'][]
  /** The condition of a partial index. */
  readonly where?: string
  /** The index of an earlier version that this index makes superfluous. */
  readonly replaces?: IndexSchema
  readonly table: string
  /** As in `TableSchema`. */
  readonly record: keyof HostTables | null
}

export interface IndexSchema {
  readonly name: string
  readonly columns: string
}

export interface TableSchema {
  readonly name: string
  /** The option of `createKnexStore` that maps the table. Null: no option maps the table, so the table is always ours. */
  readonly record: keyof HostTables | null
  columns(types: ColumnTypes, usersKey: string): readonly string[]
  /** Returns the constraints, which follow the columns on separate lines, because MySQL ignores `references` next to a column. */
  constraints(users: string): readonly string[]
  readonly indexes: readonly IndexSchema[]
}

/** The key of the users table, which may be the host's table. */
export interface UsersKey {
  /** Quoted for SQL. */
  readonly table: string
  readonly key: string
  readonly type: string
}
