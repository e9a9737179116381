import type { HostTables } from '../default-tables'
import type { ColumnTypes } from '../dialect'
import { VERSIONS } from '../schema-versions'
import type { TableSchema } from '../version'

/** A default table of `createAuthTables`, with the default column names. */
export interface ExpectedTable {
  readonly columns: ReadonlyMap<string, ExpectedColumn>
  /** The columns of each unique rule. Includes the primary key. */
  readonly unique: readonly (readonly string[])[]
  readonly indexes: readonly (readonly string[])[]
  readonly refersToUsers: boolean
}

export interface ExpectedColumn {
  readonly type: string
  readonly isNotNull: boolean
}

/** Reads the expected table from the CREATE TABLE statements, so that the check and the statements never differ. */
export function expectedTable(record: keyof HostTables, types: ColumnTypes): ExpectedTable {
  const schema = schemaOf(record)
  const lines = schema.columns(types, types.id).map(readLine)
  const constraints = schema.constraints('users')
  const added = VERSIONS.flatMap(({ indexes = [] }) => indexes).filter(({ table, isOptional }) => table === schema.name && !isOptional)
  return {
    columns: new Map(lines.map(({ name, type, isNotNull }) => [name, { type, isNotNull }])),
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
  const [, name = '', type = '', rest = ''] = /^(\S+) (.+?)((?: not null| primary key| unique)*)$/.exec(line) ?? []
  return { name, type, isNotNull: rest.includes('not null'), isUnique: /primary key|unique/.test(rest) }
}

function namesIn(list: string): string[] {
  return list.split(', ')
}
