import { ConfigurationError } from '../../core/errors'
import { seeTroubleshooting } from '../../core/troubleshooting'

/** Which of your columns holds which field. `false`: you have none, only for fields that docs/store.md lists as optional. */
export type ColumnMap<R> = { readonly [Field in keyof R]?: string | false }

/** A table of your own. The default of each option is as in the default table. */
export interface TableOptions<R> {
  /** The table's name, optionally with its schema: `app.people`. */
  table?: string
  /** Field of doorward -> your column. `false`: you have no column for the field. docs/store.md lists the fields that can be `false`. */
  columns?: ColumnMap<R>
  /** The type of the key. Default 'uuid'. The database makes integer keys. doorward makes UUID keys and text keys, as UUID v4. */
  ids?: 'uuid' | 'integer' | 'text'
  /** Returns values of your own columns for a new row. If the values contain the key, doorward uses this key instead of a UUID. */
  insertDefaults?: () => Record<string, unknown>
  /**
   * How the table stores instants. Default 'native': `timestamptz` on PostgreSQL, DATETIME in UTC on MariaDB, milliseconds on SQLite.
   * 'epoch_ms': milliseconds since 1970, as an integer. 'iso': ISO 8601 text in UTC, with milliseconds.
   */
  instants?: 'native' | 'epoch_ms' | 'iso'
}

const KEYS: ReadonlySet<string> = new Set(['table', 'columns', 'ids', 'insertDefaults', 'instants'])

export interface MappableTable {
  readonly fields: object
  readonly optional: object
  readonly onlyIfNamed?: readonly string[]
  /** True: the caller makes the key, so `ids` cannot be 'integer'. */
  readonly keyIsGiven?: boolean
}

/** @param more further options, which another function checks @throws ConfigurationError with a message that names the option */
export function checkTableOptions(name: string, options: unknown, definition: MappableTable, more: readonly string[] = []): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) throw refusal(name, ' must be an object of table options.')
  for (const key of Object.keys(options))
    if (!KEYS.has(key))
      throw refusal(name, `.${key} is not an option; known are ${[...KEYS, ...more].join(', ')}. ${seeTroubleshooting('unknown-names')}`)
  const { table, columns = {}, ids, insertDefaults, instants } = options as Record<string, unknown> // an object, as checked
  if (table !== undefined && !isName(table)) throw refusal(name, '.table must be the name of a table.')
  if (ids !== undefined && !['uuid', 'integer', 'text'].includes(String(ids)))
    throw refusal(name, ".ids must be 'uuid', 'integer' or 'text'.")
  if (ids === 'integer' && definition.keyIsGiven) throw refusal(name, ".ids must be 'uuid' or 'text': this key is made before the row is.")
  if (instants !== undefined && !['native', 'epoch_ms', 'iso'].includes(String(instants)))
    throw refusal(name, ".instants must be 'native', 'epoch_ms' or 'iso'.")
  if (insertDefaults !== undefined && typeof insertDefaults !== 'function') throw refusal(name, '.insertDefaults must be a function.')
  if (typeof columns !== 'object' || columns === null) throw refusal(name, '.columns must be an object: our field -> your column.')
  for (const [field, column] of Object.entries(columns)) checkColumn(`${name}.columns.${field}`, field, column, definition)
  const needed = Object.keys(columns).filter((field) => Reflect.get(columns, field) === false && !mayLack(definition, field))
  if (needed.length > 0)
    throw refusal(
      needed.map((field) => `${name}.columns.${field}`).join(', '),
      ` cannot be false: doorward does not work without ${needed.length === 1 ? 'this column' : 'these columns'}. ${fixOf(name, definition)}`,
    )
}

function mayLack({ optional, onlyIfNamed = [] }: MappableTable, field: string): boolean {
  return Object.hasOwn(optional, field) || onlyIfNamed.includes(field)
}

function fixOf(name: string, definition: MappableTable): string {
  const may = Object.keys(definition.fields).filter((field) => mayLack(definition, field))
  return may.length === 0 ? `No column of ${name} may be missing.` : `Of ${name} only ${may.join(', ')} may be false.`
}

function refusal(name: string, problem: string): ConfigurationError {
  return new ConfigurationError(`createKnexStore(): ${name}${problem}`)
}

function checkColumn(path: string, field: string, column: unknown, { fields }: MappableTable): void {
  if (!Object.hasOwn(fields, field))
    throw refusal(path, ` is no field; known are ${Object.keys(fields).join(', ')}. ${seeTroubleshooting('unknown-names')}`)
  if (column === undefined) return
  if (column !== false && (!isName(column) || column.includes('.'))) throw refusal(path, ` must be the name of a column, or false.`)
}

// Knex gives some texts a meaning: ` as ` (an alias), `*` (every column) and `?` (a placeholder).
export function isName(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '' && !/\sas\s|[*?]|\0/i.test(value)
}
