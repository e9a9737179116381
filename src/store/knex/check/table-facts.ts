export interface TableFacts {
  /** `unreadable`: the catalogue has no information about the name, or the name does not belong to a table. */
  readonly kind: 'table' | 'view' | 'missing' | 'unreadable'
  readonly columns: readonly ColumnFacts[]
  readonly indexes: readonly IndexFacts[]
  readonly references: readonly (readonly string[])[]
}

/** `zoneless`: date and time without a zone, in a database that also has a type with one. `other`: unknown to the check. */
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
  readonly type: string
  readonly family: TypeFamily
  /** In characters. Null: no limit. */
  readonly length: number | null
  readonly bytes: number | null
  /** The database pads the text with blanks up to `length`. */
  readonly isPadded: boolean
  readonly isNotNull: boolean
  /** The database fills the column when an INSERT does not name it. */
  readonly isFilled: boolean
  readonly fallback: string | null
  readonly isGenerated: boolean
  /** The name of x, if the column is generated as `lower(x)`. */
  readonly lowerOf: string | null
  /** `none`: the column compares byte for byte. `case`: upper and lower case are equal. `any`: other texts may be equal too. */
  readonly looseness: 'none' | 'case' | 'any'
  /** MySQL only. A statement that changes the column must repeat all of them. */
  readonly charset: string
  readonly extra: string
}

export interface IndexFacts {
  readonly isUnique: boolean
  readonly isPartial: boolean
  readonly keys: readonly IndexKey[]
}

/** `column` is null if the key is an expression that the check does not know. */
export interface IndexKey {
  readonly column: string | null
  readonly isLowered: boolean
}

export function noFacts(kind: TableFacts['kind']): TableFacts {
  return { kind, columns: [], indexes: [], references: [] }
}
