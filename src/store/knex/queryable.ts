import type { Knex } from 'knex'

/** What statements are made with and sent through: the host's knex, a transaction of the host's, or a unit of ours. */
export interface Queryable extends Pick<Knex, 'client' | 'isTransaction' | 'queryBuilder' | 'raw' | 'ref'> {
  (table: string): Knex.QueryBuilder
  /** Of a unit: its connection, also once the database has ended the transaction; for what is no part of that. */
  beyond?(): Queryable
}
