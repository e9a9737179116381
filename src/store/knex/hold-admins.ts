import type { Knex } from 'knex'
import type { Dialect } from './dialect'
import { touchedColumn } from './hold-user'
import type { Queryable, Row } from './queryable'

import type { UsersTable } from './users-table'

/**
 * Locks the active administrators and returns their rows. First finds the administrators without a lock, because a locking read of the
 * whole table would wait for every login. Then locks the found rows in the order of their keys, and checks the conditions again.
 */
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
