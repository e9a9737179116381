import type { UserRecord } from '../auth-store'
import type { Dialect } from './dialect'
import type { Queryable } from './queryable'
import type { Row, Table } from './table'

/**
 * Reads the user that meets `wanted` and keeps every other unit from changing it until this one ends. Without row locks
 * a write that changes nothing holds the row (SQLite: the file), and a unit that starts with it never has to turn a read
 * lock into a write lock.
 */
export async function holdUser(db: Queryable, dialect: Dialect, users: Table<UserRecord>, wanted: Partial<UserRecord>): Promise<Row[]> {
  const query = db(users.name).where(users.where(wanted))
  if (dialect.rowLocks) return query.select([...users.selection]).forUpdate()
  const column = users.bareColumn('isActive')
  return query.update({ [column]: db.ref(column) }).returning([...users.selection])
}
