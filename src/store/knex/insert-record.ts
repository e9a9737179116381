import type { NewUser, UserOrigin, UserRecord } from '../auth-store'
import type { Connection } from './connection'
import type { Queryable, Row } from './queryable'
import type { Table, Values } from './table'
import type { UsersTable } from './users-table'

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

/** With fields of the host, returns the stored row, because the database may have filled some fields. */
export async function insertUser(connection: Connection, users: UsersTable, user: NewUser, origin: UserOrigin): Promise<UserRecord> {
  const row = users.newUserRow(user, origin)
  const { returning } = connection.dialect
  if (!users.hostFields || !returning) {
    const id = await connection.statement('users.insert', (db) => insertRow(db, returning, users, row))
    return users.hostFields ? readUser(connection, users, id) : users.asStored({ ...user, name: user.name ?? nameIn(users, row), id })
  }
  const [inserted] = await connection.statement<Row[]>('users.insert', (db) =>
    db(users.name)
      .insert(row)
      .returning([...users.selection]),
  )
  return users.toRecord(inserted ?? {})
}

function nameIn(users: UsersTable, row: Values): string | null {
  return users.fields.has('name') ? ((row[users.bareColumn('name')] as string | null | undefined) ?? null) : null // a text column
}

async function readUser(connection: Connection, users: UsersTable, id: string): Promise<UserRecord> {
  const rows = await connection.statement<Row[]>('users.insert', (db) =>
    db(users.name)
      .where(users.where({ id }))
      .select([...users.selection]),
  )
  const user = rows.map(users.toRecord).find((found) => found.id === id)
  if (!user) throw new Error(`The row that was just inserted into ${users.name} cannot be read`)
  return user
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
