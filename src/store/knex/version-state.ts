import { databaseName } from './database-name'
import type { HostTables } from './default-tables'
import type { Dialect } from './dialect'
import type { Queryable } from './queryable'
import { VERSIONS } from './schema-versions'
import type { AddedIndex, NarrowedColumn, TableSchema, Version } from './version'

/** A database, and which of its tables belong to the host. */
export interface Place {
  readonly knex: Queryable
  readonly dialect: Dialect
  readonly hostTables: HostTables
}

/** Returns the versions that the database does not have. Reads only the catalogue. */
export async function pendingVersions(place: Place): Promise<Version[]> {
  const pending: Version[] = []
  for (const version of VERSIONS) if (!(await isDone(place, version))) pending.push(version)
  return pending
}

/** Returns true if the database has everything that the version makes, and nothing that the version replaces. */
export async function isDone({ knex, dialect, hostTables }: Place, version: Version): Promise<boolean> {
  const exists = (name: string) => dialect.hasTable(knex, databaseName(knex, name))
  const made = ownTables(withoutReplaced(version, dialect), hostTables)
  for (const { name, indexes } of made) {
    if (!(await exists(name))) return false
    // MySQL makes these indexes with the table. SQLite may have been interrupted between the two.
    if (!dialect.indexesInTable) for (const index of indexes) if (!(await dialect.hasIndex(knex, name, index.name))) return false
  }
  const isMoved = version.move && hostTables[version.move.record] === undefined
  const replaced = isMoved ? version.move.replaces.filter((name) => !made.some((table) => table.name === name)) : []
  for (const name of replaced) if (await exists(name)) return false
  for (const { table, column, from } of narrowedColumns(version, hostTables, dialect))
    if ((await dialect.columnType(knex, table, column))?.split(' ', 1)[0] === from) return false
  for (const { table, name, replaces } of addedIndexes(version, hostTables, dialect)) {
    if (!(await dialect.hasIndex(knex, table, name))) return false
    if (replaces && (await dialect.hasIndex(knex, table, replaces.name))) return false
  }
  return true
}

/** Returns the version without the tables and indexes that a later version replaces, because a new database does not need them. */
export function withoutReplaced(version: Version, { name: database }: Dialect): Version {
  const later = VERSIONS.slice(VERSIONS.indexOf(version) + 1)
  const indexes = later.flatMap(({ indexes = [] }) => indexes.filter((index) => isOn(index, database)))
  const replaced = new Set([...later.flatMap(({ move }) => move?.replaces ?? []), ...indexes.map(replacedBy)])
  const tables = version.tables.filter(({ name }) => !replaced.has(name))
  return { ...version, tables: tables.map((table) => ({ ...table, indexes: table.indexes.filter(({ name }) => !replaced.has(name)) })) }
}

function isOn({ on }: AddedIndex, database: Dialect['name']): boolean {
  return on?.includes(database) ?? true
}

function replacedBy({ replaces }: AddedIndex): string | undefined {
  return replaces?.name
}

export function ownTables({ tables }: Version, hostTables: HostTables): readonly TableSchema[] {
  return tables.filter((table) => isOurs(table, hostTables))
}

export function addedIndexes({ indexes = [] }: Version, hostTables: HostTables, { name }: Dialect): readonly AddedIndex[] {
  return indexes.filter((index) => isOurs(index, hostTables) && isOn(index, name))
}

export function isOurs({ record }: { readonly record: keyof HostTables | null }, hostTables: HostTables): boolean {
  return record === null || hostTables[record] === undefined
}

export function narrowedColumns({ narrowed = [] }: Version, hostTables: HostTables, { types }: Dialect): readonly NarrowedColumn[] {
  return narrowed.filter((column) => isOurs(column, hostTables) && column.from === types.text)
}
