import type { Connection } from './connection'
import type { Queryable } from './queryable'
import type { Row, Table, Values } from './table'

/** One INSERT. The record as it would be read back, under the key it got. */
export async function insertRecord<R extends { id: string }>(
  connection: Connection,
  verb: string,
  table: Table<R>,
  values: Omit<R, 'id'>,
): Promise<R> {
  const row = table.newRow(values as unknown as Partial<R>) // all of R but the key
  const id = await connection.statement(verb, (db) => insertRow(db, connection.dialect.returning, table, row))
  return table.asStored({ ...values, id } as R) // the two parts of R
}

async function insertRow<R extends { id: string }>(db: Queryable, returning: boolean, table: Table<R>, row: Values): Promise<string> {
  const insert = db(table.name).insert(row)
  if (!table.databaseMakesKeys) {
    await insert
    return String(row[table.bareColumn('id')])
  }
  if (returning) {
    const [created]: Row[] = await insert.returning([...table.select(['id'])])
    return table.read(created ?? {}, 'id')
  }
  const [key] = await insert // LAST_INSERT_ID()
  if (!Number(key)) throw new Error(`${table.name} made no key for the new row; its key column needs AUTO_INCREMENT`)
  return table.read({ [table.alias('id')]: key }, 'id')
}
