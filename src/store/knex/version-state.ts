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

/** Returns the versions that the database does not have. Reads only the catalogue. */
export async function pendingVersions(place: SchemaPlace): Promise<Version[]> {
  const pending: Version[] = []
  for (const version of VERSIONS) if (!(await isDone(place, version))) pending.push(version)
  return pending
}

/** Returns true if the database has everything that the version makes. */
export async function isDone({ knex, dialect, hostTables }: SchemaPlace, version: Version): Promise<boolean> {
  for (const table of ownTables(version, hostTables)) {
    if (!(await dialect.hasTable(knex, databaseName(knex, table.name)))) return false
    // MySQL makes these indexes with the table. SQLite may have been interrupted between the two.
    if (!dialect.indexesInTable)
      for (const { name } of indexesOf(table, dialect)) if (!(await dialect.hasIndex(knex, table.name, name))) return false
  }
  for (const { table, name } of addedIndexes(version, hostTables, dialect)) if (!(await dialect.hasIndex(knex, table, name))) return false
  return true
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
