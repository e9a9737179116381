import type { Knex } from 'knex'
import type { Queryable } from './queryable'

/**
 * Deletes at most `most` rows that meet the query, on MySQL, which has LIMIT in DELETE and refuses it in a subquery.
 * Knex leaves the LIMIT out before 3.2.9, so it is written behind what Knex made.
 */
export async function deleteUpTo(db: Queryable, query: Knex.QueryBuilder, most: number): Promise<number> {
  const [{ affectedRows }] = await db.raw('? limit ?', [query.delete(), most])
  return affectedRows
}
