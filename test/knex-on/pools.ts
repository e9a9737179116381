import Database from 'better-sqlite3'
import type { Knex } from 'knex'
import { createPool } from 'mysql2'
import { createPool as createPromisePool } from 'mysql2/promise'
import pg from 'pg'
import { knexOn } from '../../src'
import type { DatabaseName } from '../support/databases'

/** A pool as an app has it, on the database of a test. */
export interface AppPool {
  readonly knex: Knex
  /** Sends a statement through the app's own pool. */
  query(sql: string): Promise<unknown>
  close(): Promise<unknown>
}

export type PoolKind = 'pg' | 'mysql2' | 'mysql2/promise' | 'better-sqlite3'

export const kindsOf: Readonly<Record<DatabaseName, readonly PoolKind[]>> = {
  sqlite: ['better-sqlite3'],
  postgres: ['pg'],
  mariadb: ['mysql2', 'mysql2/promise'],
}

/** Opens the pool on the database that `config` names. */
export function openPool(kind: PoolKind, { connection, searchPath }: Knex.Config, max = 5): AppPool {
  if (kind === 'better-sqlite3') {
    const handle = new Database((connection as { filename: string }).filename)
    handle.pragma('foreign_keys = on')
    return { knex: knexOn(handle), query: async (sql) => handle.prepare(sql).all(), close: async () => handle.close() }
  }
  if (kind === 'pg') {
    const pool = new pg.Pool({ connectionString: String(connection), max, options: `-c search_path=${[searchPath].flat().join(',')}` })
    pool.on('error', () => undefined) // an idle client that the server ends, as every app listens for
    return { knex: knexOn(pool), query: (sql) => pool.query(sql), close: () => pool.end() }
  }
  const options = { ...(connection as object), connectionLimit: max }
  if (kind === 'mysql2/promise') {
    const pool = createPromisePool(options)
    return { knex: knexOn(pool), query: (sql) => pool.query(sql), close: () => pool.end() }
  }
  const pool = createPool(options)
  return { knex: knexOn(pool), query: (sql) => pool.promise().query(sql), close: () => pool.promise().end() }
}
