import type { Knex } from 'knex'
import type { Expired } from '../auth-store'
import type { Connection } from './connection'
import { nextEnded, rowKeyOf } from './next-ended'
import type { Table } from './table'

type Narrow = (query: Knex.QueryBuilder) => Knex.QueryBuilder

/**
 * Deletes expired rows by their keys, which it reads along the index on (`end`, id). The DELETE repeats the condition. So a row stays if
 * another request moved its `end` to a later time.
 */
export async function deleteExpired<R extends { id: string }>(
  connection: Connection,
  verb: string,
  table: Table<R>,
  end: keyof R & ('expiresAt' | 'createdAt'),
  expired: Expired,
  narrow: Narrow = (query) => query,
): Promise<number> {
  const where: Narrow = (query) => narrow(query.where(table.column(end), '<=', table.value(end, expired.before as R[typeof end]))) // an instant
  const keys = (await nextEnded(connection, verb, table, end, expired, { where })).map((row) => rowKeyOf(table, row))
  if (keys.length === 0) return 0
  return connection.statement<number>(verb, (db) => where(db(table.name).whereIn(table.column('id'), keys)).delete())
}
