import type { Queryable } from './queryable'

/** Returns the name in the database. A host's knex may convert names between snake_case and camelCase. */
export function databaseName(knex: Queryable, name: string): string {
  return knex
    .raw('??', [name])
    .toQuery()
    .split('.')
    .map((part) => part.replace(/^[`"]|[`"]$/g, ''))
    .join('.')
}
