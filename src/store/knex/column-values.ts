import type { Knex } from 'knex'
import type { Dialect } from './dialect'
import type { Queryable } from './queryable'

/** `uuid`, `integer key` and `text key` are strings in our code. `native`, `epoch_ms` and `iso` are instants. */
export type ColumnKind = 'uuid' | 'integer key' | 'text key' | 'text' | 'integer' | 'boolean' | 'native' | 'epoch_ms' | 'iso'

// Our code compares keys byte for byte. A database treats other forms as equal: '{...}' or upper case for a UUID, '007' for a number.
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const INTEGER_KEY = /^(0|[1-9]\d{0,18})$/
const LARGEST_KEY = 2n ** 63n - 1n

// PostgreSQL refuses NUL. A lone surrogate becomes U+FFFD in UTF-8, so two different strings would become equal.
const UNSTORABLE = /[\0\p{Surrogate}]/u

/** The place of a value in a compiled query. Check the value with `canHold`. `inColumn` returns one slot object for each kind. */
export class Slot<Input> {
  readonly read: (input: Input) => unknown
  readonly #inColumns = new Map<ColumnKind, Slot<Input>>()

  constructor(read: (input: Input) => unknown) {
    this.read = read
  }

  inColumn(kind: ColumnKind, dialect: Dialect): Slot<Input> {
    const slot = this.#inColumns.get(kind) ?? new Slot((input: Input) => toBinding(kind, this.read(input), dialect))
    this.#inColumns.set(kind, slot)
    return slot
  }
}

export function canHold(kind: ColumnKind, value: unknown, maxLength = Number.POSITIVE_INFINITY): boolean {
  if (value === null || value instanceof Slot) return true
  switch (kind) {
    case 'uuid':
      return typeof value === 'string' && UUID.test(value)
    case 'integer key':
      return typeof value === 'string' && INTEGER_KEY.test(value) && BigInt(value) <= LARGEST_KEY
    case 'text key':
      return typeof value === 'string' && value !== '' && !UNSTORABLE.test(value)
    case 'text':
      return typeof value === 'string' && !UNSTORABLE.test(value) && (value.length <= maxLength || [...value].length <= maxLength)
    case 'integer':
      return Number.isSafeInteger(value)
    case 'boolean':
      return typeof value === 'boolean'
    default:
      return value instanceof Date && !Number.isNaN(value.getTime())
  }
}

/** `canHold` must have accepted the value. */
export function toColumn(kind: ColumnKind, value: unknown, knex: Queryable, dialect: Dialect): Knex.Value | null {
  if (value === null || value === undefined) return null
  const bound = value instanceof Slot ? value.inColumn(kind, dialect) : toBinding(kind, value, dialect)
  // Casts to a 64-bit integer. Without the cast, PostgreSQL fails if the number does not fit the column's own type.
  return (kind === 'integer key' ? knex.raw(`cast(? as ${dialect.types.bigint})`, [bound as string]) : bound) as Knex.Value // knex passes a slot through unchanged
}

function toBinding(kind: ColumnKind, value: unknown, dialect: Dialect): string | number | boolean | null {
  if (value === null || value === undefined) return null
  switch (kind) {
    case 'boolean':
      return dialect.booleanToColumn(value as boolean)
    case 'native':
      return dialect.instantToColumn(value as Date)
    case 'epoch_ms':
      return (value as Date).getTime()
    case 'iso':
      return (value as Date).toISOString()
    default:
      return value as string | number
  }
}

/** Uses `??` for the column. Null: SELECT reads the column itself. */
export function expressionOf(kind: ColumnKind, dialect: Dialect): string | null {
  if (kind === 'native') return dialect.instantExpression
  return kind === 'integer key' ? dialect.integerKeyExpression : null
}

export function fromColumn(kind: ColumnKind, value: unknown): unknown {
  if (value === null || value === undefined) return null
  switch (kind) {
    case 'boolean':
      return toBoolean(value)
    case 'integer':
      return Number(value)
    case 'native':
    case 'epoch_ms':
    case 'iso':
      return toInstant(value)
    case 'integer key':
      // A host's driver may parse 64-bit integers as JavaScript numbers. Two large keys could then become equal.
      if (typeof value === 'number' && !Number.isSafeInteger(value)) throw new Error('A key in the database is too large for a number')
      return String(value)
    default:
      return String(value)
  }
}

// MariaDB returns a BIT(1) as a byte. A host's type parsers may leave PostgreSQL's own text.
function toBoolean(value: unknown): boolean {
  if (typeof value === 'boolean') return value // of PostgreSQL's driver: every request reads some
  const text = String(Buffer.isBuffer(value) && value.length === 1 ? value[0] : value)
  if (/^(true|t|1)$/.test(text)) return true
  if (/^(false|f|0)$/.test(text)) return false
  throw new Error('A flag in the database cannot be read')
}

const NUMBER = /^-?\d+$/
const WITHOUT_ZONE = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?$/

// Accepts a Date, a number, a number as text, or a date as text. A text without a time zone is in UTC.
function toInstant(value: unknown): Date {
  const instant = value instanceof Date ? value : Number.isInteger(value) ? new Date(value as number) : fromText(String(value))
  // An invalid date is an error, because it would never compare as expired.
  if (Number.isNaN(instant.getTime())) throw new Error('A date in the database cannot be read')
  return instant
}

function fromText(text: string): Date {
  if (NUMBER.test(text)) return new Date(Number(text))
  return new Date(WITHOUT_ZONE.test(text) ? `${text.replace(' ', 'T')}Z` : text)
}
