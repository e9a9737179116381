import type { Knex } from 'knex'
import type { Dialect } from './dialect'
import type { Queryable, Row } from './queryable'
import type { Selected, Table } from './table'

/**
 * Changes the rows that match `condition` and returns their new values. After the change the rows should no longer match `condition`. Then
 * exactly one of several simultaneous callers gets a row. Sends one statement. If the database has no RETURNING, sends two statements, so
 * call it in `Connection.guarded`.
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
 * Changes rows in a database without RETURNING. A locking read waits for the row's lock and sees the new values (InnoDB, at every isolation
 * level). Then the row stays unchanged until the transaction ends.
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
