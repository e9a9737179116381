import { randomUUID } from 'node:crypto'
import type { Knex } from 'knex'
import { ConfigurationError, ServiceUnavailableError, ValidationError } from '../../core/errors'
import { withOwnMessage } from '../../core/logger'
import { seeTroubleshooting } from '../../core/troubleshooting'
import { type ColumnKind, canHold, expressionOf, fromColumn, toColumn } from './column-values'
import type { Dialect } from './dialect'
import type { Queryable, Row } from './queryable'
import type { TableOptions } from './table-options'

export type FieldKind = 'id' | 'userId' | 'text' | 'integer' | 'boolean' | 'instant'

export interface Field {
  readonly column: string
  readonly kind: FieldKind
  /** In characters. SQLite itself accepts every length. */
  readonly maxLength?: number
}

export interface TableDefinition<R> {
  readonly table: string
  /** Aliases of two tables must never collide. */
  readonly prefix: string
  readonly fields: { readonly [F in keyof R]: Field }
  /** The fields that a host's table may lack, with the value for that case. */
  readonly optional: { readonly [F in keyof R]?: (record: Partial<R>) => R[F] }
  readonly keyIsGiven?: boolean
  /**
   * Columns of optional features. A host's own table has such a column only if the host names it in `columns`. A record has the field only
   * if it has a value.
   */
  readonly onlyIfNamed?: readonly (keyof R & string)[]
}

export type Values = Record<string, Knex.Value | null>
export type Selected = string | Knex.Raw

/** Only this code maps fields to columns and converts their values. */
export interface Table<R> {
  readonly name: string
  readonly fields: ReadonlySet<keyof R>
  readonly ids: NonNullable<TableOptions<R>['ids']>
  readonly columns: ReadonlyMap<keyof R, MappedColumn>
  readonly databaseMakesKeys: boolean
  /** `insertDefaults` adds the host's own columns to new rows. Two rows may have different columns. */
  readonly hostFillsColumns: boolean
  readonly selection: readonly Selected[]
  column(field: keyof R): string
  bareColumn(field: keyof R): string
  alias(field: keyof R): string
  value<F extends keyof R>(field: F, value: R[F]): Knex.Value | null
  /** Null: a column cannot hold its value. Then no row can match, and no statement is needed. */
  match(wanted: Partial<R>): Values | null
  /** Throws if a column cannot hold its value, because a query without the condition would match every row. */
  where(wanted: Partial<R>): Values
  /** Texts compare byte for byte, whatever the collation of the column (`Dialect.exactText`). */
  whereExactly(query: Knex.QueryBuilder, wanted: Partial<R>): Knex.QueryBuilder
  /** Omits fields that have no column. @throws ValidationError for a value that a column cannot hold */
  toRow(values: Partial<R>): Values
  /** With the host's own columns. Contains the key, except if the database makes the keys. */
  newRow(values: Partial<R>): Values
  /** `own` contains the host's own columns. If `given` and `own` have a column in common, `given` wins. */
  completeRow(given: Values, own: Record<string, unknown> | undefined, id?: unknown): Values
  select(fields: readonly (keyof R)[]): readonly Selected[]
  /** With every digit that the column stores, in a form that WHERE accepts. */
  selectExactly(field: keyof R, alias: string): Selected
  read<F extends keyof R>(row: Row, field: F): R[F]
  toRecord(row: Row): R
  asRow(values: Partial<R>): Row
  /** As a later read would return it: fields without a column get their default, and long texts are cut. */
  asStored(record: R): R
  /** The host's column is narrower than ours. `toRow` then cuts longer values, or rejects them. */
  narrow(field: keyof R, width: Width): void
  /** The database lacks the column of a feature that is off. From now on no statement names it. Only a field of `onlyIfNamed`. */
  leaveOut(field: keyof R): void
  fit<Values extends Partial<R>>(values: Values): Values
}

export interface Width {
  /** In characters. */
  readonly length: number
  /** True: `fit` cuts a longer value. False: `toRow` rejects it. */
  readonly isCut: boolean
}

export interface MappedColumn {
  readonly name: string
  readonly defaultName: string
  readonly kind: ColumnKind
  readonly maxLength?: number
}

export interface Binding {
  readonly knex: Queryable
  readonly dialect: Dialect
  readonly userIds: NonNullable<TableOptions<unknown>['ids']>
}

export function bindTable<R extends { id: string }>(
  definition: TableDefinition<R>,
  given: TableOptions<R> | undefined,
  { knex, dialect, userIds }: Binding,
): Table<R> {
  const options = given ?? {}
  const { optional, prefix, onlyIfNamed = [] } = definition
  const name = options.table ?? definition.table
  const names = Object.keys(definition.fields) as (keyof R & string)[] // a mapped type has exactly the keys of R
  const columns: Map<keyof R, MappedColumn> = columnsOf(definition, given, userIds)
  const selected = new Map([...columns].map(([field, column]) => [field, selectedColumn(column, name, alias(prefix, String(field)))]))

  // Every request reads records here. So this code computes only once what is equal for all rows.
  let readers = [...columns].map(([field, column]) => {
    return { field: String(field), as: alias(prefix, String(field)), column, isOmitted: onlyIfNamed.some((one) => one === field) }
  })
  const missing = names.filter((field) => !columns.has(field) && !onlyIfNamed.includes(field))
  const widths = new Map<keyof R, Width>()
  const fields = new Set(columns.keys())
  const selection = [...selected.values()]

  function columnOf(field: keyof R): MappedColumn {
    const column = columns.get(field)
    if (!column) throw new ConfigurationError(`The table ${name} has no column for ${String(field)}; map one in createKnexStore().`)
    return column
  }

  function selectedColumn({ name: column, kind }: MappedColumn, from: string, as: string): Selected {
    const expression = expressionOf(kind, dialect)
    return expression ? knex.raw(`${expression} as ??`, [`${from}.${column}`, as]) : `${from}.${column} as ${as}`
  }

  const table: Table<R> = {
    name,
    fields,
    ids: options.ids ?? 'uuid',
    columns,
    databaseMakesKeys: options.ids === 'integer',
    hostFillsColumns: options.insertDefaults !== undefined,
    selection,
    column: (field) => `${name}.${columnOf(field).name}`,
    bareColumn: (field) => columnOf(field).name,
    alias: (field) => alias(prefix, String(field)),
    value: (field, value) => toColumn(columnOf(field).kind, value, knex, dialect),
    match(wanted) {
      const conditions: Values = {}
      let count = 0
      for (const [field, value] of Object.entries(wanted)) {
        // A JavaScript host may pass an undefined value. Without its condition every row would match.
        if (value === undefined) return null
        const { name: column, kind, maxLength } = columnOf(field as keyof R) // Object.entries widens the keys
        if (!canHold(kind, value, maxLength)) return null
        conditions[`${name}.${column}`] = toColumn(kind, value, knex, dialect)
        count += 1
      }
      return count === 0 ? null : conditions
    },
    where(wanted) {
      const conditions = table.match(wanted)
      if (!conditions) throw new TypeError(`No row of ${name} can hold the wanted values`)
      return conditions
    },
    whereExactly(query, wanted) {
      query.where(table.where(wanted)) // an index serves this condition
      for (const [field, value] of entries(wanted)) {
        const { name: column, kind } = columnOf(field)
        const isText = kind === 'text' || kind === 'text key'
        if (dialect.exactText && isText) query.whereRaw(dialect.exactText, [`${name}.${column}`, toColumn(kind, value, knex, dialect)])
      }
      return query
    },
    toRow(values) {
      const row: Values = {}
      const bad: string[] = []
      const fitting = table.fit(values)
      // Loops over the keys and makes no list of pairs, because an import calls this function a million times.
      for (const field of Object.keys(fitting) as (keyof R & string)[]) {
        const value = fitting[field]
        const column = columns.get(field)
        if (value === undefined || !column) continue
        if (canHold(column.kind, value, widths.get(field)?.length ?? column.maxLength))
          row[column.name] = toColumn(column.kind, value, knex, dialect)
        else bad.push(field)
      }
      if (bad.length > 0) throw new ValidationError({ details: { errors: bad.map((path) => ({ path, rule: 'unstorable' })) } })
      return row
    },
    newRow: ({ id, ...values }) => table.completeRow(table.toRow(values as unknown as Partial<R>), options.insertDefaults?.(), id), // all of R but the key
    completeRow(given, own, id) {
      // Uses Object.assign. With an object spread, V8 makes a new hidden class for every row, which is slow for a million rows.
      const rest: Values = Object.assign({}, own && withoutOurs(own as Values, given), given) // the host's values, which knex checks
      if (table.databaseMakesKeys) return rest
      const key = id ?? own?.[table.bareColumn('id')] ?? randomUUID()
      const { name: column, kind } = columnOf('id')
      if (!canHold(kind, key))
        throw withOwnMessage(new TypeError(`The key of a new row of ${name} is no ${options.ids ?? 'uuid'}; look at insertDefaults`))
      return Object.assign(rest, { [column]: toColumn(kind, key, knex, dialect) })
    },
    select: (some) => some.flatMap((field) => selected.get(field) ?? []),
    selectExactly(field, as) {
      const expression = columnOf(field).kind === 'native' ? dialect.exactInstantExpression : null
      return expression ? knex.raw(`${expression} as ??`, [table.column(field), as]) : `${table.column(field)} as ${as}`
    },
    read<F extends keyof R>(row: Row, field: F): R[F] {
      return readColumn(columnOf(field), row[table.alias(field)]) as R[F] // what the field's kind promises
    },
    toRecord(row) {
      const record: Record<string, unknown> = {}
      for (const { field, as, column, isOmitted } of readers) {
        const value = readColumn(column, row[as])
        if (value !== null || !isOmitted) record[field] = value
      }
      return completed(record as Partial<R>) // fields of R
    },
    asRow: (values) => Object.fromEntries(entries(values).map(([field, value]) => [table.alias(field), value])),
    asStored(record) {
      const stored = entries(table.fit(record)).filter(
        ([field, value]) => columns.has(field) && (value !== null || !onlyIfNamed.includes(field)),
      )
      return completed(Object.fromEntries(stored) as Partial<R>) // fields of R
    },
    narrow: (field, width) => void widths.set(field, width),
    leaveOut(left) {
      for (const named of [columns, selected, fields]) named.delete(left)
      selection.splice(0, selection.length, ...selected.values())
      readers = readers.filter(({ field }) => field !== left)
    },
    fit(values) {
      if (widths.size === 0) return values
      const cut = entries<R>(values).map(([field, value]) => [field, fitted(value, widths.get(field))])
      return { ...values, ...Object.fromEntries(cut) }
    },
  }
  return table

  /** @throws ServiceUnavailableError for a value that cannot be read, because it is not "no value" */
  function readColumn({ name: column, kind }: MappedColumn, value: unknown): unknown {
    try {
      return fromColumn(kind, value)
    } catch (error) {
      throw unreadableColumn(`${name}.${column}`, error)
    }
  }

  /** Ignores the case: EMAIL and email are one column. If an INSERT names a column twice, SQLite would use the first, the host's value. */
  function withoutOurs(own: Values, given: Values): Values {
    const mapped = [...columns].flatMap(([field, column]) => (field === 'id' ? [] : [column.name]))
    const ours = new Set([...mapped, ...Object.keys(given)].map((column) => column.toLowerCase()))
    return Object.fromEntries(Object.entries(own).filter(([column]) => !ours.has(column.toLowerCase())))
  }

  function completed(record: Partial<R>): R {
    if (missing.length === 0) return record as R // every field of R
    const standIns = missing.map((field) => [field, optional[field]?.(record) ?? null])
    return { ...record, ...Object.fromEntries(standIns) } as R // every field of R
  }
}

/** The cause names the column. */
export function unreadableColumn(column: string, error: unknown): ServiceUnavailableError {
  const cause = new Error(`${column}: ${(error as Error).message}. ${seeTroubleshooting('a-value-cannot-be-read')}`)
  return new ServiceUnavailableError({ cause: withOwnMessage(cause) })
}

/** @throws ConfigurationError if two fields use one column */
function columnsOf<R>(
  { fields, onlyIfNamed = [] }: TableDefinition<R>,
  given: TableOptions<R> | undefined,
  userIds: Binding['userIds'],
): Map<keyof R & string, MappedColumn> {
  const options = given ?? {}
  const isUnnamed = (field: string) => given?.columns?.[field as keyof R] === undefined && given !== undefined
  const columns = new Map<keyof R & string, MappedColumn>()
  const kinds: Record<FieldKind, ColumnKind> = {
    id: keyKind(options.ids ?? 'uuid'),
    userId: keyKind(userIds),
    text: 'text',
    integer: 'integer',
    boolean: 'boolean',
    instant: options.instants ?? 'native',
  }
  const owners = new Map<string, string>()
  for (const [field, definition] of Object.entries<Field>(fields)) {
    const name = options.columns?.[field as keyof R] ?? definition.column // Object.entries widens the keys
    if (name === false || (onlyIfNamed.some((one) => one === field) && isUnnamed(field))) continue
    const owner = owners.get(name)
    if (owner) throw new ConfigurationError(`createKnexStore(): the column ${name} is mapped twice, to ${owner} and ${field}.`)
    owners.set(name, field)
    const { maxLength, column: defaultName } = definition
    columns.set(field as keyof R & string, {
      name,
      defaultName,
      kind: kinds[definition.kind],
      ...(maxLength === undefined ? {} : { maxLength }),
    }) // as above
  }
  return columns
}

function fitted(value: unknown, width: Width | undefined): unknown {
  if (!width?.isCut || typeof value !== 'string' || value.length <= width.length) return value
  return [...value].slice(0, width.length).join('')
}

function keyKind(ids: Binding['userIds']): ColumnKind {
  if (ids === 'uuid') return 'uuid'
  return ids === 'integer' ? 'integer key' : 'text key'
}

// Only lower-case letters, because a host's name mapper (snake_case <-> camelCase) changes other names.
function alias(prefix: string, field: string): string {
  return `${prefix}${field}`.toLowerCase()
}

function entries<R>(values: Partial<R>): [keyof R & string, unknown][] {
  const given = Object.entries(values).filter(([, value]) => value !== undefined)
  return given as [keyof R & string, unknown][] // Object.entries widens the keys
}
