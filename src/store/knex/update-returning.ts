import type { Knex } from 'knex'
import type { Row, Table } from './table'

/**
 * The one use of UPDATE ... RETURNING: changes the rows that meet `condition` and returns them as they are now, in one
 * statement, so that of any number of racers exactly one gets a row whose condition the change ends.
 */
export async function updateReturning<R>(
  db: Knex,
  table: Table<R>,
  condition: (query: Knex.QueryBuilder) => Knex.QueryBuilder,
  changes: Partial<R>,
  fields: readonly string[] = table.selection,
): Promise<Row[]> {
  return condition(db(table.name))
    .update(table.toRow(changes))
    .returning([...fields])
}
