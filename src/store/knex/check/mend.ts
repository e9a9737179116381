import type { HostTables, Tables } from '../default-tables'
import type { Dialect } from '../dialect'
import type { Advise } from '../driver-errors'
import { databaseName, type Queryable } from '../queryable'
import type { MappedColumn } from '../table'
import type { TableAndColumn } from '../table-and-column'
import { quotedName, quotedPath } from './read-table'
import type { Subject } from './subject'
import type { ColumnFacts } from './table-facts'

/** From here to `addForeignKey`: a statement for a person to run. Null: the database has no statement for the change. */
export function addColumn(subject: Subject, column: string, definition: string): string {
  return `alter table ${quotedTable(subject)} add column ${name(subject, column)} ${definition}`
}

/** On PostgreSQL, `using` computes the new value from the old one. */
export function changeType(subject: Subject, column: ColumnFacts, type: string, using?: (value: string) => string): string | null {
  switch (subject.dialect.name) {
    case 'postgresql':
      return alterType(subject, column, type, using)
    case 'mysql':
      return modify(subject, column, type, column.isNotNull)
    default:
      return null
  }
}

export function dropNotNull(subject: Subject, column: ColumnFacts): string | null {
  switch (subject.dialect.name) {
    case 'postgresql':
      return `alter table ${quotedTable(subject)} alter column ${name(subject, column.name)} drop not null`
    case 'mysql':
      return modify(subject, column, column.type, false)
    default:
      return null
  }
}

export function addUniqueRule(subject: Subject, columns: readonly string[]): string {
  return addIndex(subject, columns, 'unique')
}

export function addIndex(subject: Subject, columns: readonly string[], unique: 'unique' | '' = ''): string {
  const list = columns.map((column) => name(subject, column)).join(', ')
  const kind = unique ? 'unique index' : 'index'
  switch (subject.dialect.name) {
    case 'postgresql': // PostgreSQL chooses a name, and allows writes meanwhile
      return `create ${kind} concurrently on ${quotedTable(subject)} (${list})`
    case 'mysql':
      return `alter table ${quotedTable(subject)} add ${kind} (${list})`
    default:
      return `create ${kind} ${indexName(subject, columns, unique)} on ${bareTable(subject)} (${list})`
  }
}

export function addForeignKey(subject: Subject, column: string, users: { table: string; key: string }): string | null {
  if (subject.dialect.name === 'sqlite') return null
  const referred = `${quotedPath(users.table, mark(subject.dialect))} (${name(subject, users.key)})`
  return `alter table ${quotedTable(subject)} add foreign key (${name(subject, column)}) references ${referred} on delete cascade`
}

export function quotedTable({ table, dialect }: Subject): string {
  return quotedPath(table, mark(dialect))
}

export function name({ dialect }: Subject, column: string): string {
  return quotedName(column, mark(dialect))
}

function mark({ name }: Dialect): '"' | '`' {
  return name === 'mysql' ? '`' : '"'
}

/** If `using` converts the values, first drops the default, which has the old type, and sets the converted default at the end. */
function alterType(
  subject: Subject,
  { name: column, fallback, isFilled }: ColumnFacts,
  type: string,
  using?: (value: string) => string,
): string {
  const alter = `alter column ${name(subject, column)}`
  const change = `${alter} type ${type}${using ? ` using ${using(name(subject, column))}` : ''}`
  const hasFallback = using !== undefined && isFilled && fallback !== null
  const steps = hasFallback ? [`${alter} drop default`, change, `${alter} set default ${using(`(${fallback})`)}`] : [change]
  return `alter table ${quotedTable(subject)} ${steps.join(', ')}`
}

/** Repeats every attribute of the column, because MODIFY drops each attribute that the statement does not name. */
function modify(
  subject: Subject,
  { name: column, family, charset, fallback, extra }: ColumnFacts,
  type: string,
  isNotNull: boolean,
): string {
  const isText = family === 'text' && /char|text/i.test(type) && !/collate/i.test(type)
  const parts = [
    ...(isText && charset ? [`character set ${charset}`] : []),
    isNotNull ? 'not null' : 'null',
    ...(fallback === null ? [] : [`default ${fallback}`]),
    ...(extra ? [extra] : []),
  ]
  return `alter table ${quotedTable(subject)} modify column ${name(subject, column)} ${[type, ...parts].join(' ')}`
}

/** SQLite expects the schema before the index's name, and no schema before the table's name. */
function indexName({ table, dialect }: Subject, columns: readonly string[], unique: string): string {
  const [last = '', schema] = table.split('.').reverse()
  const index = [last, ...columns, unique ? 'unique' : 'index'].join('_')
  return quotedPath(schema === undefined ? index : `${schema}.${index}`, mark(dialect))
}

function bareTable({ table, dialect }: Subject): string {
  return quotedName(table.split('.').at(-1) ?? table, mark(dialect))
}

interface NamedTable {
  readonly record: keyof HostTables
  readonly name: string
  readonly isMapped: boolean
  readonly columns: ReadonlyMap<string, MappedColumn>
}

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

/** MariaDB's error adds the name of the database. PostgreSQL's error omits the schema. */
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
