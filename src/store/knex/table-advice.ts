import { databaseName } from './database-name'
import type { HostTables, Tables } from './default-tables'
import type { Advise } from './driver-errors'
import type { Queryable } from './queryable'
import type { MappedColumn } from './table'
import type { TableAndColumn } from './table-and-column'

interface NamedTable {
  readonly record: keyof HostTables
  readonly name: string
  /** True if the host's options map the table. */
  readonly isMapped: boolean
  readonly columns: ReadonlyMap<string, MappedColumn>
}

/** Returns the advice for errors of the store: which table and column failed. For a host's table, also names the option that maps it. */
export function tableAdviceOn(knex: Queryable, tables: Tables, hostTables: HostTables): Advise {
  const all = Object.entries(tables).map(
    ([record, table]): NamedTable => ({
      record: record as keyof HostTables, // Object.entries widens the keys
      name: databaseName(knex, table.name),
      isMapped: hostTables[record as keyof HostTables] !== undefined,
      columns: table.columns,
    }),
  )
  return (verb, place) => {
    const { problem } = place
    const table = all.find(({ name }) => isNamed(name, place.table)) ?? all.find(({ record }) => verb.startsWith(`${record}.`))
    if (!table || problem === null) return ''
    return `: ${sentences[problem](table, columnIn(knex, table, verb, place))}`
  }
}

/** Compares names of tables. MariaDB's error adds the name of the database. PostgreSQL's error omits the schema. */
function isNamed(name: string, told: string | null): boolean {
  return told !== null && (told === name || told.endsWith(`.${name}`) || name.endsWith(`.${told}`))
}

interface NamedColumn {
  readonly name: string
  /** Undefined: the column belongs to the host. */
  readonly field: string | undefined
}

function columnIn(knex: Queryable, { record, columns }: NamedTable, verb: string, { problem, column }: TableAndColumn): NamedColumn | null {
  // PostgreSQL does not say which value was too long. A login writes only one text, so that text was too long.
  const only =
    verb === 'users.recordLogin' && record === 'users' && problem === 'too long' ? columns.get('hashedPassword')?.name : undefined
  const name = column ?? (only === undefined ? null : databaseName(knex, only))
  if (name === null) return null
  return { name, field: [...columns].find(([, mapped]) => databaseName(knex, mapped.name) === name)?.[0] }
}

const ours = 'run createAuthTables() or the migrations'

const sentences: Readonly<Record<NonNullable<TableAndColumn['problem']>, (table: NamedTable, column: NamedColumn | null) => string>> = {
  'missing table': ({ record, name, isMapped }) =>
    `there is no table ${name}; ${isMapped ? `name yours in \`${record}.table\` of createKnexStore()` : ours}`,
  'missing column': ({ record, name, isMapped }, column) => {
    const what = column ? `the table ${name} has no column ${column.name}` : `a column of ${name} is missing`
    if (!isMapped) return `${what}; ${ours}`
    return `${what}; add the column, or name your column in \`${record}.columns${column?.field ? `.${column.field}` : ''}\` of createKnexStore()`
  },
  null: ({ record, name }, column) =>
    `${column ? `${name}.${column.name}` : `a column of ${name}`} is NOT NULL and nothing fills it; return a value from \`${record}.insertDefaults\` of createKnexStore()`,
  'too long': ({ name }, column) => `a value is too long for ${column ? `${name}.${column.name}` : `a column of ${name}`}; make it wider`,
}
