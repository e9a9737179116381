import type { Queryable } from './queryable'

/** The name as the database knows it: a host may have had knex map names between snake_case and camelCase. */
export function databaseName(knex: Queryable, name: string): string {
  return knex
    .raw('??', [name])
    .toQuery()
    .split('.')
    .map((part) => part.replace(/^[`"]|[`"]$/g, ''))
    .join('.')
}
