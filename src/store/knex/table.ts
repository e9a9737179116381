import type { Knex } from 'knex'
import { ValidationError } from '../../errors'
import type { Dialect } from './dialect'

/** What a field is to us; drivers differ in what they return for it (SQLite: `1` for true, a number for an instant). */
export type FieldKind = 'id' | 'text' | 'integer' | 'boolean' | 'instant'

export interface Field {
  readonly column: string
  readonly kind: FieldKind
  /** Of a text, in characters; SQLite would take any length. */
  readonly maxLength?: number
}

export interface TableDefinition<R> {
  readonly table: string
  readonly fields: { readonly [F in keyof R]: Field }
}

export type Row = Record<string, unknown>
export type Values = Record<string, Knex.Value | null>
/** What SELECT and RETURNING take. */
export type Selected = string | Knex.Raw

/** A record's table: the only place where fields become columns and values change their form. */
export interface Table<R> {
  readonly name: string
  readonly fields: ReadonlySet<keyof R>
  /** `table.column as alias` of every field, for SELECT and RETURNING; the aliases of two tables never collide. */
  readonly selection: readonly Selected[]
  /** The qualified column. */
  column(field: keyof R): string
  /** The column alone, for SET and column lists. */
  bareColumn(field: keyof R): string
  /** The name under which `selection` returns the field. */
  alias(field: keyof R): string
  value<F extends keyof R>(field: F, value: R[F]): Knex.Value | null
  /** Conditions for WHERE; null when no row can hold such a value, so that the database need not be asked. */
  match(wanted: Partial<R>): Values | null
  /** The same for values known to fit. Never null: a forgotten condition would mean every row. */
  where(wanted: Partial<R>): Values
  /** Columns for INSERT and SET. @throws ValidationError for a value the column cannot hold */
  toRow(values: Partial<R>): Values
  /** Like `selection`, of a few fields. */
  select(fields: readonly (keyof R)[]): readonly Selected[]
  read<F extends keyof R>(row: Row, field: F): R[F]
  toRecord(row: Row): R
  /** The values as `selection` would return them. */
  asRow(values: Partial<R>): Row
}

export function bindTable<R>(definition: TableDefinition<R>, knex: Knex, dialect: Dialect): Table<R> {
  const { table: name, fields } = definition
  const names = Object.keys(fields) as (keyof R & string)[] // a mapped type has exactly the keys of R
  const prefix = name.replace(/[^a-z0-9]/gi, '')
  const selected = new Map(
    names.map((field) => {
      const { column, kind } = fields[field]
      const expression = kind === 'instant' ? dialect.instantExpression : null
      const [from, as] = [`${name}.${column}`, alias(prefix, field)]
      return [field, expression ? knex.raw(`${expression} as ??`, [from, as]) : `${from} as ${as}`] as const
    }),
  )
  const table: Table<R> = {
    name,
    fields: new Set(names),
    selection: [...selected.values()],
    column: (field) => `${name}.${fields[field].column}`,
    bareColumn: (field) => fields[field].column,
    alias: (field) => alias(prefix, String(field)),
    value: (field, value) => toColumn(fields[field].kind, value, dialect),
    match(wanted) {
      const given = entries(wanted)
      if (!given.every(([field, value]) => canHold(fields[field], value))) return null
      return Object.fromEntries(given.map(([field, value]) => [table.column(field), toColumn(fields[field].kind, value, dialect)]))
    },
    where(wanted) {
      const conditions = table.match(wanted)
      if (!conditions) throw new TypeError(`No row of ${name} can hold the wanted values`)
      return conditions
    },
    toRow(values) {
      const given = entries(values).filter(([field]) => Object.hasOwn(fields, field))
      const bad = given.filter(([field, value]) => !canHold(fields[field], value))
      if (bad.length > 0) throw new ValidationError({ details: { errors: bad.map(([path]) => ({ path, rule: 'unstorable' })) } })
      return Object.fromEntries(given.map(([field, value]) => [fields[field].column, toColumn(fields[field].kind, value, dialect)]))
    },
    select: (some) => some.flatMap((field) => selected.get(field as keyof R & string) ?? []), // fields are names
    // `fromColumn` returns what the field's kind promises.
    read: <F extends keyof R>(row: Row, field: F) => fromColumn(fields[field].kind, row[table.alias(field)]) as R[F],
    // Every field of R.
    toRecord: (row) => Object.fromEntries(names.map((field) => [field, table.read(row, field)])) as R,
    asRow: (values) => Object.fromEntries(entries(values).map(([field, value]) => [table.alias(field), value])),
  }
  return table
}

// One lower-case word: it survives the name mappers a host may have put on its knex (snake_case <-> camelCase).
function alias(prefix: string, field: string): string {
  return `${prefix}${field}`.toLowerCase()
}

function entries<R>(values: Partial<R>): [keyof R & string, unknown][] {
  const given = Object.entries(values).filter(([, value]) => value !== undefined)
  return given as [keyof R & string, unknown][] // Object.entries widens the keys
}

// Canonical form only: PostgreSQL's uuid takes others for equal, and an identifier is compared byte for byte.
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

// NUL is refused by PostgreSQL; a lone surrogate is replaced by U+FFFD on its way, so that two strings become one.
const UNSTORABLE = /[\0\p{Surrogate}]/u

function canHold(field: Field, value: unknown): boolean {
  if (value === null) return true
  switch (field.kind) {
    case 'id':
      return typeof value === 'string' && UUID.test(value)
    case 'text':
      return typeof value === 'string' && !UNSTORABLE.test(value) && (field.maxLength === undefined || [...value].length <= field.maxLength)
    case 'integer':
      return Number.isSafeInteger(value)
    case 'boolean':
      return typeof value === 'boolean'
    case 'instant':
      return value instanceof Date && !Number.isNaN(value.getTime())
  }
}

function toColumn(kind: FieldKind, value: unknown, dialect: Dialect): Knex.Value | null {
  if (value === null || value === undefined) return null
  if (kind === 'instant') return dialect.instantToColumn(value as Date) // by the field's type
  if (kind === 'boolean') return dialect.booleanToColumn(value as boolean) // by the field's type
  return value as string | number // id, text or integer, by the field's type
}

function fromColumn(kind: FieldKind, value: unknown): unknown {
  if (value === null || value === undefined) return null
  switch (kind) {
    case 'boolean':
      return value === true || Number(value) === 1
    case 'integer':
      return Number(value)
    case 'instant':
      return toInstant(value)
    default:
      return String(value)
  }
}

// A number or its text on SQLite; a Date on PostgreSQL, or text where the host replaced the driver's parser.
function toInstant(value: unknown): Date {
  if (value instanceof Date) return value
  const instant = new Date(typeof value === 'string' && !/^-?\d+$/.test(value) ? value : Number(value))
  // An unreadable expiry must not compare as "not yet".
  if (Number.isNaN(instant.getTime())) throw new Error('A date in the database cannot be read')
  return instant
}
