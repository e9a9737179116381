import type { Knex } from 'knex'
import type { UserRecord } from '../auth-store'
import type { Dialect } from './dialect'
import type { Queryable, Row } from './queryable'
import type { Table } from './table'

/**
 * Reads the user that matches `wanted`, and locks the row until the transaction ends. SQLite has no row locks: there an UPDATE that changes
 * no value locks the file. So the transaction never has to turn a read lock into a write lock.
 */
export async function holdUser(db: Queryable, dialect: Dialect, users: Table<UserRecord>, wanted: Partial<UserRecord>): Promise<Row[]> {
  return holdUsers(db, dialect, users, (query) => query.where(users.where(wanted)))
}

/** Like `holdUser`, for every user that a condition matches. */
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

/**
 * Returns the column for an UPDATE that only locks the row, by setting the column to its own value. SQLite also writes every index that
 * contains the column. There, no index of ours contains `lastLoginAt`.
 */
export function touchedColumn(users: Table<UserRecord>): string {
  return users.bareColumn(users.fields.has('lastLoginAt') ? 'lastLoginAt' : 'isActive')
}
