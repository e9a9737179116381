import type { Knex } from 'knex'

export interface Queryable extends Pick<Knex, 'client' | 'isTransaction' | 'queryBuilder' | 'raw' | 'ref'> {
  (table: string): Knex.QueryBuilder
}

export type Row = Record<string, unknown>

export interface Statement {
  /** A hash of the SQL, for prepared statements. Equal SQL has an equal name in every process and version. */
  readonly name?: string
  readonly sql: string
  /** The SQL with the driver's own placeholders. Without it, the statement goes through Knex. */
  readonly text?: string
  readonly bindings: readonly Knex.Value[]
}

/** A host's knex may convert names between snake_case and camelCase. */
export function databaseName(knex: Queryable, name: string): string {
  return knex
    .raw('??', [name])
    .toQuery()
    .split('.')
    .map((part) => part.replace(/^[`"]|[`"]$/g, ''))
    .join('.')
}
