/** What the database's catalogue says about one table. */
export interface TableFacts {
  /** `unreadable`: the catalogue has no information about the name, or the name does not belong to a table. */
  readonly kind: 'table' | 'view' | 'missing' | 'unreadable'
  readonly columns: readonly ColumnFacts[]
  readonly indexes: readonly IndexFacts[]
  /** The columns of each foreign key. */
  readonly references: readonly (readonly string[])[]
}

/**
 * The kind of values that a type can hold. `zoneless`: date and time without a zone, in a database that also has a type with a zone.
 * `other`: the check does not know the type.
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
  /** The type in the syntax of CREATE TABLE. */
  readonly type: string
  readonly family: TypeFamily
  /** The maximum length of a text, in characters. Null: no limit. */
  readonly length: number | null
  /** The size of an integer, in bytes. */
  readonly bytes: number | null
  /** True if the database pads the text with blanks up to `length`. */
  readonly isPadded: boolean
  readonly isNotNull: boolean
  /** True if the database fills the column when an INSERT does not name the column. */
  readonly isFilled: boolean
  /** The expression of the default. Null: none. */
  readonly fallback: string | null
  /** True if the database computes the column from other columns, so that the store cannot write the column. */
  readonly isGenerated: boolean
  /** The name of x, if the column is generated as `lower(x)`. */
  readonly lowerOf: string | null
  /** `none`: the column compares byte for byte. `case`: upper and lower case are equal. `any`: other texts may be equal too. */
  readonly looseness: 'none' | 'case' | 'any'
  /** MySQL: the character set, its collation, and further attributes. A statement that changes the column must repeat all of them. */
  readonly charset: string
  readonly extra: string
}

export interface IndexFacts {
  readonly isUnique: boolean
  /** True if the index does not contain every row. */
  readonly isPartial: boolean
  readonly keys: readonly IndexKey[]
}

/** A key of an index. If the key is an expression that the check does not know, `column` is null. */
export interface IndexKey {
  readonly column: string | null
  readonly isLowered: boolean
}

/** Returns the facts for a table that is missing or cannot be read. */
export function noFacts(kind: TableFacts['kind']): TableFacts {
  return { kind, columns: [], indexes: [], references: [] }
}
