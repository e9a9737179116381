import type { Knex } from 'knex'

/** What statements are made with and sent through: the host's knex, or a transaction. */
export interface Queryable extends Pick<Knex, 'client' | 'isTransaction' | 'queryBuilder' | 'raw' | 'ref'> {
  (table: string): Knex.QueryBuilder
}

export type Row = Record<string, unknown>

/** A statement that can be sent: its text for `knex.raw`, and what stands in its places. */
export interface Statement {
  /** Of a text that is sent again and again: the same for the same text, in every process and version. */
  readonly name?: string
  readonly sql: string
  readonly bindings: readonly Knex.Value[]
}
