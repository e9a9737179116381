import type { HostTables } from './default-tables'
import type { ColumnTypes, Dialect } from './dialect'
import type { Queryable } from './queryable'

/** A step of the schema. Once released it does not change any more: a later step alters what it made. */
export interface Version {
  readonly name: string
  readonly tables: readonly TableSchema[]
  /** Columns of tables of earlier versions that become narrower. */
  readonly narrowed?: readonly NarrowedColumn[]
  /** On tables of earlier versions, which may have rows. */
  readonly indexes?: readonly AddedIndex[]
  /** Moves rows out of tables of earlier versions, which end with it. */
  readonly move?: Move
}

/** Each half can be run again after it was interrupted: MariaDB commits each statement by itself. */
export interface Move {
  /** As in `TableSchema`. */
  readonly record: keyof HostTables
  /** Names of tables of earlier versions that are gone afterwards, or have been made anew. */
  readonly replaces: readonly string[]
  /** Before the version's own tables are made. */
  begin(db: Queryable, dialect: Dialect): Promise<void>
  /** After that. */
  finish(db: Queryable, dialect: Dialect, users: UsersKey, now: Date): Promise<void>
}

/** A text column that gets a bounded width, on the databases that know the type it has. Longer values are cut. */
export interface NarrowedColumn {
  readonly table: string
  /** As in `TableSchema`. */
  readonly record: keyof HostTables | null
  readonly column: string
  /** The type it has before. */
  readonly from: string
  readonly characters: number
}

export interface AddedIndex extends IndexSchema {
  /** Databases that need it; left out: all. */
  readonly on?: readonly Dialect['name'][]
  /** Of a partial index. */
  readonly where?: string
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
  /** What it holds, by the name of its options; null: no record, so it is ours whatever the host's tables are. */
  readonly record: keyof HostTables | null
  columns(types: ColumnTypes, usersKey: string): readonly string[]
  /** After the columns: MySQL reads over `references` beside a column. */
  constraints(users: string): readonly string[]
  readonly indexes: readonly IndexSchema[]
}

/** The key of the users table, which may be the host's. */
export interface UsersKey {
  /** As in SQL text. */
  readonly table: string
  readonly key: string
  readonly type: string
}
