import type { Knex } from 'knex'
import type { Expired } from '../auth-store'
import type { Connection } from './connection'
import { deleteUpTo } from './delete-up-to'
import type { Table } from './table'

type Narrow = (query: Knex.QueryBuilder) => Knex.QueryBuilder

/**
 * Deletes expired rows by one statement, along the index on `end`. The statement repeats the condition outside of the subquery. So a row
 * stays if another request moved its `end` to a later time.
 */
export function deleteExpired<R extends { id: string }>(
  connection: Connection,
  verb: string,
  table: Table<R>,
  end: keyof R & ('expiresAt' | 'createdAt'),
  { before, most }: Expired,
  narrow: Narrow = (query) => query,
): Promise<number> {
  const ended = (query: Knex.QueryBuilder) => narrow(query.where(table.column(end), '<=', table.value(end, before as R[typeof end]))) // an instant
  return connection.statement<number>(verb, (db) => {
    if (connection.dialect.name === 'mysql') return deleteUpTo(db, ended(db(table.name)), most)
    // The order makes the database read along the index.
    const picked = ended(db(table.name)).orderBy(table.column(end)).limit(most).select(table.column('id'))
    return ended(db(table.name)).whereIn(table.column('id'), picked).delete()
  })
}
