/** What the database's catalogue says of one table. */
export interface TableFacts {
  /** `unreadable`: the catalogue does not tell, or no table stands behind the name. */
  readonly kind: 'table' | 'view' | 'missing' | 'unreadable'
  readonly columns: readonly ColumnFacts[]
  readonly indexes: readonly IndexFacts[]
  /** The columns of each foreign key. */
  readonly references: readonly (readonly string[])[]
}

/** A type by what it can hold. `zoneless`: date and time without a zone, where another type has one. `other`: not judged. */
export type TypeFamily =
  | 'text'
  | 'integer'
  | 'number'
  | 'boolean'
  | 'uuid'
  | 'instant'
  | 'zoneless'
  | 'date'
  | 'bytes'
  | 'untyped'
  | 'other'

export interface ColumnFacts {
  readonly name: string
  /** As CREATE TABLE has it. */
  readonly type: string
  readonly family: TypeFamily
  /** Of a text, in characters; null: no limit. */
  readonly length: number | null
  /** Of an integer. */
  readonly bytes: number | null
  /** The database adds blanks up to `length`. */
  readonly isPadded: boolean
  readonly isNotNull: boolean
  /** The database has a value where an INSERT names none. */
  readonly isFilled: boolean
  /** An expression of the default; null: none. */
  readonly fallback: string | null
  /** Computed from other columns: nobody can write it. */
  readonly isGenerated: boolean
  /** `lower(x)` is generated: the name of x. */
  readonly lowerOf: string | null
  /** Compares otherwise than byte for byte; `case`: takes upper and lower case for equal, and nothing else. */
  readonly looseness: 'none' | 'case' | 'any'
  /** MySQL: character set, collation and extras, which a change of the column has to repeat. */
  readonly charset: string
  readonly extra: string
}

export interface IndexFacts {
  readonly isUnique: boolean
  /** Rows are left out of it. */
  readonly isPartial: boolean
  readonly keys: readonly IndexKey[]
}

/** `column` null: an expression that is not looked into. */
export interface IndexKey {
  readonly column: string | null
  readonly isLowered: boolean
}

/** Nothing is there, or nothing can be said of it. */
export function noFacts(kind: TableFacts['kind']): TableFacts {
  return { kind, columns: [], indexes: [], references: [] }
}
