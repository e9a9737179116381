import type { AuthStore } from '../auth-store'
import { checkedTablesOf } from './knex-store'

/** Facts about the store's database, for checks of the setup. */
export interface DatabaseFacts {
  readonly isSqlite: boolean
  /** True for SQLite without a file. */
  readonly isInMemory: boolean
  readonly poolMax: number
  /** Returns the time by the database's clock. */
  now(): Promise<Date>
}

const knexPoolMax = 10

/** Returns the facts about the database. Null: the store is an adapter of the host. */
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

/** Each query returns milliseconds since 1970, in every time zone of the connection. */
const clocks = {
  postgresql: 'select extract(epoch from clock_timestamp()) * 1000 as ms',
  mysql: 'select unix_timestamp(now(3)) * 1000 as ms',
  sqlite: "select (julianday('now') - 2440587.5) * 86400000 as ms",
} as const
