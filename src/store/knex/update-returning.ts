import type { Knex } from 'knex'
import type { Dialect } from './dialect'
import type { Queryable } from './queryable'
import type { Row, Selected, Table } from './table'

/**
 * Changes the rows that meet `condition` and returns them as they are now, so that of any number of racers exactly one
 * gets a row whose condition the change ends. One statement; without RETURNING two, for `Connection.guarded`.
 */
export async function updateReturning<R extends { id: string }>(
  db: Queryable,
  dialect: Dialect,
  table: Table<R>,
  condition: (query: Knex.QueryBuilder) => Knex.QueryBuilder,
  changes: Partial<R>,
  fields: readonly Selected[] = table.selection,
): Promise<Row[]> {
  if (!dialect.returning) return lockThenUpdate(db, table, condition, changes, fields)
  return condition(db(table.name))
    .update(table.toRow(changes))
    .returning([...fields])
}

/**
 * A locking read looks at a row as it is once its holder is gone (InnoDB, at every isolation level), and what it found
 * stays as it is until the transaction ends.
 */
async function lockThenUpdate<R extends { id: string }>(
  db: Queryable,
  table: Table<R>,
  condition: (query: Knex.QueryBuilder) => Knex.QueryBuilder,
  changes: Partial<R>,
  fields: readonly Selected[],
): Promise<Row[]> {
  const id = table.select(['id'])
  const rows: Row[] = await condition(db(table.name))
    .select([...new Set([...fields, ...id])])
    .forUpdate()
  if (rows.length === 0) return []
  const ids = rows.map((row) => table.value('id', table.read(row, 'id')))
  await db(table.name).whereIn(table.column('id'), ids).update(table.toRow(changes))
  return rows.map((row) => ({ ...row, ...table.asRow(changes) }))
}
