import type { AuthStore } from '../auth-store'
import { checkedTablesOf } from './knex-store'

/** What a look at a set-up wants to know of the database. */
export interface DatabaseFacts {
  readonly isSqlite: boolean
  /** SQLite without a file. */
  readonly isInMemory: boolean
  readonly poolMax: number
  /** By its own clock. */
  now(): Promise<Date>
}

const knexPoolMax = 10

/** Null: the store is an adapter of the host's. */
export function databaseFacts(store: AuthStore): DatabaseFacts | null {
  const checked = checkedTablesOf(store)
  if (!checked) return null
  const { knex, dialect } = checked
  const { connection, pool } = knex.client.config
  const isSqlite = dialect.name === 'sqlite'
  const filename: unknown = typeof connection === 'string' ? connection : Object(connection).filename
  return {
    isSqlite,
    isInMemory: isSqlite && (filename === ':memory:' || filename === ''),
    poolMax: Number(Object(pool).max ?? (isSqlite ? 1 : knexPoolMax)),
    async now() {
      const [row] = await dialect.run(knex, { sql: clocks[dialect.name], bindings: [] })
      return new Date(Number(row?.['ms']))
    },
  }
}

/** Milliseconds since 1970, whatever the time zone of the connection is. */
const clocks = {
  postgresql: 'select extract(epoch from clock_timestamp()) * 1000 as ms',
  mysql: 'select unix_timestamp(now(3)) * 1000 as ms',
  sqlite: "select (julianday('now') - 2440587.5) * 86400000 as ms",
} as const
