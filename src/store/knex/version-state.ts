import { databaseName } from './database-name'
import type { HostTables } from './default-tables'
import type { Dialect } from './dialect'
import type { Queryable } from './queryable'
import { VERSIONS } from './schema-versions'
import type { AddedIndex, IndexSchema, TableSchema, Version } from './version'

/** A database, and which of its tables belong to the host. */
export interface SchemaPlace {
  readonly knex: Queryable
  readonly dialect: Dialect
  readonly hostTables: HostTables
}

/** Returns the versions of which the database lacks anything. Reads only the catalogue. */
export async function pendingVersions(place: SchemaPlace): Promise<Version[]> {
  const pending: Version[] = []
  for (const version of VERSIONS) if (!isNothing(await missingOf(place, version))) pending.push(version)
  return pending
}

/** What a database lacks of a version. */
export interface Missing {
  readonly tables: readonly TableSchema[]
  /** Without the indexes that are made together with a missing table. */
  readonly indexes: readonly AddedIndex[]
}

export function isNothing({ tables, indexes }: Missing): boolean {
  return tables.length + indexes.length === 0
}

export async function missingOf({ knex, dialect, hostTables }: SchemaPlace, version: Version): Promise<Missing> {
  const tables: TableSchema[] = []
  const wanted: AddedIndex[] = []
  for (const table of ownTables(version, hostTables)) {
    if (!(await dialect.hasTable(knex, databaseName(knex, table.name)))) tables.push(table)
    else wanted.push(...indexesOf(table, dialect).map((index) => ({ ...index, table: table.name, record: table.record })))
  }
  const indexes: AddedIndex[] = []
  for (const index of [...wanted, ...addedIndexes(version, hostTables, dialect)])
    if (!(await dialect.hasIndex(knex, index.table, index.name))) indexes.push(index)
  return { tables, indexes }
}

/** Returns the indexes that this database makes together with the table. */
export function indexesOf({ indexes }: TableSchema, dialect: Dialect): readonly IndexSchema[] {
  return indexes.filter((index) => isOn(index, dialect))
}

function isOn({ on }: IndexSchema, { name }: Dialect): boolean {
  return on?.includes(name) ?? true
}

export function ownTables({ tables }: Version, hostTables: HostTables): readonly TableSchema[] {
  return tables.filter((table) => isOurs(table, hostTables))
}

export function addedIndexes({ indexes = [] }: Version, hostTables: HostTables, dialect: Dialect): readonly AddedIndex[] {
  return indexes.filter((index) => isOurs(index, hostTables) && isOn(index, dialect))
}

function isOurs({ record }: { readonly record: keyof HostTables | null }, hostTables: HostTables): boolean {
  return record === null || hostTables[record] === undefined
}
