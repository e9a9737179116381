import type { Knex } from 'knex'
import type { Dialect } from './dialect'
import type { Queryable } from './queryable'

/**
 * How a column holds what a field means; drivers differ in what they return for it (SQLite: `1` for true). `uuid`,
 * `integer key` and `text key` are keys, which are text to us; the last three are instants.
 */
export type ColumnKind = 'uuid' | 'integer key' | 'text key' | 'text' | 'integer' | 'boolean' | 'native' | 'epoch_ms' | 'iso'

// Canonical forms only: databases take others for equal ('{...}' or upper case for a uuid, '007' or '1e3' for a number),
// and an identifier is compared byte for byte.
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const INTEGER_KEY = /^(0|[1-9]\d{0,18})$/
const LARGEST_KEY = 2n ** 63n - 1n

// NUL is refused by PostgreSQL; a lone surrogate is replaced by U+FFFD on its way, so that two strings become one.
const UNSTORABLE = /[\0\p{Surrogate}]/u

/**
 * Stands in one query (`compiledFor`) for a value that each run brings along, which has to be one that `canHold` admits. As the value
 * of a column it is another slot, for all columns of a kind the same one.
 */
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

/** For WHERE, INSERT and SET, of a value that `canHold` admitted. */
export function toColumn(kind: ColumnKind, value: unknown, knex: Queryable, dialect: Dialect): Knex.Value | null {
  if (value === null || value === undefined) return null
  const bound = value instanceof Slot ? value.inColumn(kind, dialect) : toBinding(kind, value, dialect)
  // As a 64-bit integer whatever the column's size: PostgreSQL fails at a number that its own type cannot hold.
  return (kind === 'integer key' ? knex.raw(`cast(? as ${dialect.types.bigint})`, [bound as string]) : bound) as Knex.Value // knex passes a slot on
}

function toBinding(kind: ColumnKind, value: unknown, dialect: Dialect): string | number | boolean | null {
  if (value === null || value === undefined) return null
  switch (kind) {
    case 'boolean':
      return dialect.booleanToColumn(value as boolean) // by the field's type
    case 'native':
      return dialect.instantToColumn(value as Date) // by the field's type
    case 'epoch_ms':
      return (value as Date).getTime() // by the field's type
    case 'iso':
      return (value as Date).toISOString() // by the field's type
    default:
      return value as string | number // by the field's type
  }
}

/** How SELECT asks for the column (`??`); null: as it is. */
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
      // Where a host has its driver parse 64-bit integers, two keys would become one.
      if (typeof value === 'number' && !Number.isSafeInteger(value)) throw new Error('A key in the database is too large for a number')
      return String(value)
    default:
      return String(value)
  }
}

// BIT(1) of MariaDB is a byte.
function toBoolean(value: unknown): boolean {
  return value === true || Number(Buffer.isBuffer(value) ? value[0] : value) === 1
}

const NUMBER = /^-?\d+$/
const WITHOUT_ZONE = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?$/

// A number or its text; a Date; or text, which means UTC unless it says otherwise.
function toInstant(value: unknown): Date {
  if (value instanceof Date) return value
  const instant = Number.isInteger(value) ? new Date(value as number) : fromText(String(value))
  // An unreadable expiry must not compare as "not yet".
  if (Number.isNaN(instant.getTime())) throw new Error('A date in the database cannot be read')
  return instant
}

function fromText(text: string): Date {
  if (NUMBER.test(text)) return new Date(Number(text))
  return new Date(WITHOUT_ZONE.test(text) ? `${text.replace(' ', 'T')}Z` : text)
}
