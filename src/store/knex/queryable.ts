import type { Knex } from 'knex'

/** Builds and sends statements: the host's knex, or one of its transactions. */
export interface Queryable extends Pick<Knex, 'client' | 'isTransaction' | 'queryBuilder' | 'raw' | 'ref'> {
  (table: string): Knex.QueryBuilder
}

export type Row = Record<string, unknown>

/** A statement to send: its text for `knex.raw`, and the values of its placeholders. */
export interface Statement {
  /**
   * The name of the prepared statement (a hash of the SQL), for statements that the store sends often. Equal SQL has an equal name in every
   * process and version.
   */
  readonly name?: string
  readonly sql: string
  readonly bindings: readonly Knex.Value[]
}

/** Returns the name in the database. A host's knex may convert names between snake_case and camelCase. */
export function databaseName(knex: Queryable, name: string): string {
  return knex
    .raw('??', [name])
    .toQuery()
    .split('.')
    .map((part) => part.replace(/^[`"]|[`"]$/g, ''))
    .join('.')
}
