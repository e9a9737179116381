import type { HostTables } from './default-tables'
import type { ColumnTypes, Dialect } from './dialect'

/** A version of the schema. A released version never changes: a later version alters the tables of an earlier version. */
export interface Version {
  readonly name: string
  readonly tables: readonly TableSchema[]
  /** Indexes that are made after the tables, also on tables of earlier versions. These tables may already have rows. */
  readonly indexes?: readonly AddedIndex[]
}

export interface AddedIndex extends IndexSchema {
  /** The condition of a partial index. */
  readonly where?: string
  /** True: a table of the host works without the index, so the check of the tables does not ask for it. */
  readonly isOptional?: true
  readonly table: string
  /** As in `TableSchema`. */
  readonly record: keyof HostTables | null
}

export interface IndexSchema {
  readonly name: string
  readonly columns: string
  /** The databases that need the index. Absent: all. */
  readonly on?: readonly Dialect['name'][]
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
