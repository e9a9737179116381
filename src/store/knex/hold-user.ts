import type { Knex } from 'knex'
import type { UserRecord } from '../auth-store'
import type { Connection } from './connection'
import type { Dialect } from './dialect'
import type { Queryable, Row } from './queryable'
import type { Table, Values } from './table'
import type { UsersTable } from './users-table'

/** SQLite has no row locks: an UPDATE that changes no value locks the file. So no read lock must become a write lock. */
export async function holdUser(db: Queryable, dialect: Dialect, users: Table<UserRecord>, wanted: Partial<UserRecord>): Promise<Row[]> {
  return holdUsers(db, dialect, users, (query) => query.where(users.where(wanted)))
}

export async function holdUsers(
  db: Queryable,
  dialect: Dialect,
  users: Table<UserRecord>,
  condition: (query: Knex.QueryBuilder) => Knex.QueryBuilder,
): Promise<Row[]> {
  const query = condition(db(users.name))
  if (dialect.rowLocks) return query.select([...users.selection]).forUpdate()
  const column = touchedColumn(users)
  return query.update({ [column]: db.ref(column) }).returning([...users.selection])
}

/** SQLite also writes every index that contains the column. There, no index of ours contains `lastLoginAt`. */
export function touchedColumn(users: Table<UserRecord>): string {
  return users.bareColumn(users.fields.has('lastLoginAt') ? 'lastLoginAt' : 'isActive')
}

/** A locking read of the whole table would wait for every login. Locks those found in the order of their keys, and checks again. */
export async function holdAdmins(db: Queryable, dialect: Dialect, users: UsersTable): Promise<Row[]> {
  const { role } = users
  const wanted = (query: Knex.QueryBuilder): Knex.QueryBuilder =>
    role ? role.where(query.where(users.where({ isActive: true })), true) : query.where(users.where({ isActive: true, isAdmin: true }))
  if (!dialect.rowLocks) {
    const column = touchedColumn(users)
    return wanted(db(users.name))
      .update({ [column]: db.ref(column) })
      .returning([...users.selection])
  }
  const key = users.column('id')
  const found: Row[] = await wanted(db(users.name)).select([...users.select(['id'])])
  const keys = found.map((row) => users.value('id', users.read(row, 'id')) as Knex.Value) // a key is never null
  return wanted(db(users.name))
    .where((any) => void any.whereIn(key, keys as string[])) // the keys may have any type that knex can bind
    .select([...users.selection])
    .orderBy(key)
    .forUpdate()
}

/** True also if the update changed no value. */
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
