/** The facts in the database's catalogue about one table. */
export interface TableFacts {
  /** `unreadable`: the catalogue has no information, or the name does not belong to a table. */
  readonly kind: 'table' | 'view' | 'missing' | 'unreadable'
  readonly columns: readonly ColumnFacts[]
  readonly indexes: readonly IndexFacts[]
  /** The columns of each foreign key. */
  readonly references: readonly (readonly string[])[]
}

/**
 * A type by the values it can hold. `zoneless`: date and time without a zone, in a database that also has a type with a zone. `other`: not
 * checked.
 */
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
  /** The type as in CREATE TABLE. */
  readonly type: string
  readonly family: TypeFamily
  /** For texts, in characters. Null: no limit. */
  readonly length: number | null
  /** The size of an integer. */
  readonly bytes: number | null
  /** True if the database pads the text with blanks up to `length`. */
  readonly isPadded: boolean
  readonly isNotNull: boolean
  /** True if the database has a value when an INSERT names none. */
  readonly isFilled: boolean
  /** The expression of the default. Null: none. */
  readonly fallback: string | null
  /** True if it is computed from other columns, so it cannot be written. */
  readonly isGenerated: boolean
  /** The name of x, if the column is generated as `lower(x)`. */
  readonly lowerOf: string | null
  /** Whether it compares byte for byte. `case`: only upper and lower case are equal. `any`: other texts may be equal too. */
  readonly looseness: 'none' | 'case' | 'any'
  /** MySQL: the character set with its collation, and extras. A change of the column must repeat both. */
  readonly charset: string
  readonly extra: string
}

export interface IndexFacts {
  readonly isUnique: boolean
  /** True if the index leaves some rows out. */
  readonly isPartial: boolean
  readonly keys: readonly IndexKey[]
}

/** A key of an index. `column` is null for an expression that is not analysed. */
export interface IndexKey {
  readonly column: string | null
  readonly isLowered: boolean
}

/** Returns the facts for a table that is missing or cannot be read. */
export function noFacts(kind: TableFacts['kind']): TableFacts {
  return { kind, columns: [], indexes: [], references: [] }
}
