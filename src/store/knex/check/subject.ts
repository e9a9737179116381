import type { TableFinding } from '../../auth-store'
import type { ColumnKind } from '../column-values'
import type { HostTables } from '../default-tables'
import type { ColumnTypes, Dialect } from '../dialect'
import { databaseName, type Queryable } from '../queryable'
import { type TableSchema, VERSIONS } from '../schema-versions'
import type { MappedColumn } from '../table'
import type { ColumnFacts, TableFacts } from './table-facts'

/** The names are the names in the database. */
export interface Subject {
  readonly record: keyof HostTables
  readonly table: string
  readonly isMapped: boolean
  readonly dialect: Dialect
  readonly columns: readonly CheckedColumn[]
  readonly expected: ExpectedTable
  readonly facts: TableFacts
}

export interface CheckedColumn extends ExpectedColumn {
  readonly field: string
  readonly name: string
  readonly defaultName: string
  readonly kind: ColumnKind
  readonly maxLength: number | null
  readonly facts: ColumnFacts | undefined
}

export interface AnyTable {
  readonly name: string
  readonly columns: ReadonlyMap<string, MappedColumn>
}

export function subjectOf(
  db: Queryable,
  dialect: Dialect,
  record: keyof HostTables,
  { table, isMapped, isRole, facts }: { table: AnyTable; isMapped: boolean; isRole: boolean; facts: TableFacts },
): Subject {
  const expected = expectedTable(record, dialect.types)
  const byName = new Map(facts.columns.map((column) => [spelling(dialect, column.name), column]))
  const columns = [...table.columns].map(([field, { name, defaultName, kind, maxLength }]): CheckedColumn => {
    const known = databaseName(db, name)
    const { type = dialect.types.text, isNotNull = false } = expected.columns.get(defaultName) ?? {}
    const found = byName.get(spelling(dialect, known))
    if (isRole && field === 'isAdmin')
      return { field, name: known, defaultName, kind: 'text', maxLength: null, type: dialect.types.text, isNotNull, facts: found }
    return { field, name: known, defaultName, kind, maxLength: maxLength ?? null, type, isNotNull, facts: found }
  })
  return { record, table: databaseName(db, table.name), isMapped, dialect, columns, expected, facts }
}

/** Knex quotes every name, and only PostgreSQL distinguishes `Email` from `email` in quoted names. */
export function spelling({ name }: Dialect, column: string): string {
  return name === 'postgresql' ? column : column.toLowerCase()
}

export function columnOf({ columns }: Subject, field: string): CheckedColumn | undefined {
  return columns.find((column) => column.field === field)
}

export function columnsNamed({ columns }: Subject, defaultNames: readonly string[]): CheckedColumn[] | null {
  const found = defaultNames.flatMap((name) => columns.find(({ defaultName, facts }) => defaultName === name && facts) ?? [])
  return found.length === defaultNames.length ? found : null
}

type Told = Pick<TableFinding, 'level' | 'message'> & { what?: string; fails?: string | undefined; sql?: string | null }

export function finding(
  { record, table }: Subject,
  column: string | readonly string[] | null,
  { what, level, message, fails, sql = null }: Told,
): TableFinding {
  const names = column === null ? [] : [column].flat()
  const key = [[record, ...(names.length > 0 ? [names.join(',')] : [])].join('.'), ...(what === undefined ? [] : [what])].join(':')
  return {
    key,
    level,
    table,
    column: names.length > 0 ? names.join(', ') : null,
    message,
    ...(level === 'warning' && fails !== undefined && { fails }),
    sql,
  }
}

interface ExpectedTable {
  readonly columns: ReadonlyMap<string, ExpectedColumn>
  /** The columns of each unique rule. Includes the primary key. */
  readonly unique: readonly (readonly string[])[]
  readonly indexes: readonly (readonly string[])[]
  readonly refersToUsers: boolean
}

interface ExpectedColumn {
  readonly type: string
  readonly isNotNull: boolean
}

/** Reads the CREATE TABLE statements, so that the check and the statements never differ. */
function expectedTable(record: keyof HostTables, types: ColumnTypes): ExpectedTable {
  const schema = schemaOf(record)
  const lines = schema.columns(types, types.id).map(readLine)
  const constraints = schema.constraints('users')
  const later = VERSIONS.flatMap(({ columns = [] }) => columns).filter(({ table }) => table === schema.name)
  const added = VERSIONS.flatMap(({ indexes = [] }) => indexes).filter(({ table, isOptional }) => table === schema.name && !isOptional)
  return {
    columns: new Map([
      ...lines.map(({ name, type, isNotNull }) => [name, { type, isNotNull }] as const),
      ...later.map(({ name, type }) => [name, { type: type(types), isNotNull: false }] as const),
    ]),
    unique: [
      ...lines.filter(({ isUnique }) => isUnique).map(({ name }) => [name]),
      ...constraints.flatMap((constraint) => /^unique \((.*)\)$/.exec(constraint)?.slice(1).map(namesIn) ?? []),
    ],
    indexes: [...schema.indexes, ...added].map(({ columns }) => namesIn(columns)),
    refersToUsers: constraints.some((constraint) => constraint.startsWith('foreign key')),
  }
}

function schemaOf(record: keyof HostTables): TableSchema {
  const schema = VERSIONS.flatMap(({ tables }) => tables).find((table) => table.record === record)
  if (!schema) throw new Error(`No version of the schema makes a table for ${record}`)
  return schema
}

function readLine(line: string): ExpectedColumn & { name: string; isUnique: boolean } {
  const [, name = '', type = '', rest = ''] =
    /^(\S+) (.+?)((?: not null| primary key| unique| auto_?increment| generated by default as identity)*)$/.exec(line) ?? []
  return { name, type, isNotNull: rest.includes('not null'), isUnique: /primary key|unique/.test(rest) }
}

function namesIn(list: string): string[] {
  return list.split(', ')
}
