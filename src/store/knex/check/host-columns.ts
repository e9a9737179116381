import { seeTroubleshooting } from '../../../core/troubleshooting'
import type { TableFinding } from '../../auth-store'
import { databaseName } from '../database-name'
import type { HostTables } from '../default-tables'
import type { Queryable } from '../queryable'
import { finding, type Subject, spelling } from './subject'

/** The host's own columns, from its options. The names are the names in the database. */
export interface HostColumns {
  /** Columns that `insertDefaults` fills. Null: unknown. */
  readonly defaults: readonly string[] | null
  /** Those of them that got a text for an account without a name. */
  readonly texts: readonly string[]
  readonly fields: readonly HostColumn[]
}

interface HostColumn {
  readonly field: string
  readonly column: string
  /** True if a sign-up fills the column. */
  readonly isWritable: boolean
}

/** Reads the host's options, and calls `insertDefaults` once. */
export function hostColumnsOf(knex: Queryable, hostTables: HostTables, { record }: Subject): HostColumns {
  const fields = Object.entries((record === 'users' && hostTables.users?.fields) || {}).map(([field, option]): HostColumn => {
    const { column, readOnly = false } = typeof option === 'string' ? { column: option } : option
    return { field, column: databaseName(knex, column), isWritable: !readOnly }
  })
  try {
    const made: unknown = defaultsOf(hostTables, record)
    const values = Object.entries(Object(made)).map(([column, value]) => ({ column: databaseName(knex, column), value }))
    return {
      defaults: values.map(({ column }) => column),
      texts: values.filter(({ value }) => typeof value === 'string').map(({ column }) => column),
      fields,
    }
  } catch {
    return { defaults: null, texts: [], fields } // the function may need data that only a request has
  }
}

function defaultsOf(hostTables: HostTables, record: Subject['record']): unknown {
  if (record === 'users') return hostTables.users?.insertDefaults?.({ by: 'signup', email: 'check@doorward.invalid', name: null })
  const options = hostTables[record]
  return options === false ? undefined : options?.insertDefaults?.()
}

/** Finds columns that the options name but the table lacks. */
export function missingHostColumns(subject: Subject, { defaults, fields }: HostColumns): TableFinding[] {
  const known = new Set(subject.facts.columns.map(({ name }) => spelling(subject.dialect, name)))
  // The store never sends values of `insertDefaults` for a column of ours, whatever the case of the name.
  const ours = new Set(subject.columns.map(({ name }) => name.toLowerCase()))
  const named = [
    ...fields.map(({ field, column }) => ({ column, option: `users.fields.${field}` })),
    ...(defaults ?? [])
      .filter((column) => !ours.has(column.toLowerCase()))
      .map((column) => ({ column, option: `${subject.record}.insertDefaults` })),
  ]
  return named
    .filter(({ column }) => !known.has(spelling(subject.dialect, column)))
    .map(({ column, option }) => missingColumn(subject, column, option))
}

function missingColumn(subject: Subject, column: string, option: string): TableFinding {
  const message = `The table ${subject.table} has no column ${column}, which \`${option}\` of createKnexStore() names, so statements with it fail. Add the column, or correct the option. ${seeTroubleshooting('a-column-is-missing')}`
  return finding(subject, column, { level: 'error', message })
}
