import type { Connection } from './connection'
import type { Table, Values } from './table'

/** Updates the row that matches `where`. Returns true if such a row exists, even if the update changed no value. */
export async function updateFound<R extends { id: string }>(
  connection: Connection,
  verb: string,
  table: Table<R>,
  where: Values,
  row: Values,
): Promise<boolean> {
  const count = await connection.statement<number>(verb, (db) => db(table.name).where(where).update(row))
  if (count > 0 || connection.dialect.countsMatchedRows) return count > 0
  const found = await connection.statement<unknown[]>(verb, (db) => db(table.name).where(where).select(table.column('id')).limit(1))
  return found.length > 0
}
