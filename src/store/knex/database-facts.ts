import type { Knex } from 'knex'
import type { AuthStore } from '../auth-store'
import { checkedTablesOf } from './knex-store'

export interface DatabaseFacts {
  readonly isSqlite: boolean
  readonly isInMemory: boolean
  readonly poolMax: number
  /** By the database's clock. */
  now(): Promise<Date>
}

export interface UsersPlace {
  readonly knex: Knex
  readonly table: string
  /** The name or the file. Null: unknown, for example because a function makes the connection. */
  readonly database: string | null
  /** Only on PostgreSQL. Null: unknown. */
  readonly searchPath: string | null
}

export function usersPlace(store: AuthStore): UsersPlace | null {
  const checked = checkedTablesOf(store)
  if (!checked) return null
  const { connection, searchPath } = checked.knex.client.config
  const url = typeof connection === 'string' ? connection : Object(connection).connectionString
  const { filename, database } = Object(connection)
  const named: unknown = typeof url === 'string' ? databaseOf(url) : (filename ?? database)
  const schemas = [searchPath ?? []].flat().join().replaceAll(/["\s]/g, '')
  return {
    knex: checked.knex,
    table: checked.tables.users.name,
    database: typeof named === 'string' && named !== '' ? named : null,
    searchPath: checked.dialect.name === 'postgresql' && schemas !== '' ? schemas : null,
  }
}

function databaseOf(url: string): string | undefined {
  const name = url.split('?')[0]?.split('/').at(-1)
  try {
    return name === undefined ? name : decodeURIComponent(name)
  } catch {
    return name
  }
}

/** A database can have several addresses, so only its name counts. A name without a schema may be in any schema. */
export function areOtherUsers(one: UsersPlace, other: UsersPlace): boolean {
  const differ = (a: string | null, b: string | null) => a !== null && b !== null && a !== b
  const isOtherTable = bareName(one.table) !== bareName(other.table) || differ(schemaIn(one.table), schemaIn(other.table))
  if (one.knex === other.knex) return isOtherTable
  if (one.database === null || other.database === null) return false
  return isOtherTable || one.database !== other.database || isMemory(one.database) || differ(one.searchPath, other.searchPath)
}

function bareName(table: string): string | undefined {
  return table.split('.').at(-1)
}

function schemaIn(table: string): string | null {
  return table.includes('.') ? table.split('.').slice(0, -1).join('.') : null
}

function isMemory(filename: unknown): boolean {
  return filename === ':memory:' || filename === ''
}

const knexPoolMax = 10

export function databaseFacts(store: AuthStore): DatabaseFacts | null {
  const checked = checkedTablesOf(store)
  if (!checked) return null
  const { knex, dialect } = checked
  const { connection, pool } = knex.client.config
  const isSqlite = dialect.name === 'sqlite'
  const filename: unknown = typeof connection === 'string' ? connection : Object(connection).filename
  return {
    isSqlite,
    isInMemory: isSqlite && isMemory(filename),
    poolMax: Number(Object(pool).max ?? (isSqlite ? 1 : knexPoolMax)),
    async now() {
      const [row] = await dialect.run(knex, { sql: clocks[dialect.name], bindings: [] })
      return new Date(Number(row?.['ms']))
    },
  }
}

/** Milliseconds since 1970, in every time zone of the connection. */
const clocks = {
  postgresql: 'select extract(epoch from clock_timestamp()) * 1000 as ms',
  mysql: 'select unix_timestamp(now(3)) * 1000 as ms',
  sqlite: "select (julianday('now') - 2440587.5) * 86400000 as ms",
} as const
