import type { Knex } from 'knex'
import type { Queryable } from './queryable'

/**
 * Deletes at most `most` rows that match the query, on MySQL. MySQL allows LIMIT in DELETE, but not in a subquery. Knex before 3.2.9 omits
 * the LIMIT, so this function adds the LIMIT to the SQL that Knex built.
 */
export async function deleteUpTo(db: Queryable, query: Knex.QueryBuilder, most: number): Promise<number> {
  const [{ affectedRows }] = await db.raw('? limit ?', [query.delete(), most])
  return affectedRows
}
