import type { Knex } from 'knex'
import type { Dialect } from './dialect'
import type { Queryable } from './queryable'
import type { Row, Selected, Table } from './table'

/**
 * Changes the rows that match `condition` and returns their new values. If the change ends the condition, exactly one of several
 * simultaneous callers gets a row. Takes one statement, or two without RETURNING, for `Connection.guarded`.
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
 * Does the same without RETURNING. A locking read waits for the row's lock and sees the new values (InnoDB, at every isolation level). The
 * row then stays unchanged until the transaction ends.
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
