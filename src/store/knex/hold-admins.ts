import type { Knex } from 'knex'
import type { UserRecord } from '../auth-store'
import type { Dialect } from './dialect'
import type { Queryable } from './queryable'
import type { Row, Table } from './table'

/**
 * Looked up first, and then locked by their keys, in one order for everybody: a locking read through the whole table would
 * wait for whoever logs in. The conditions are asked once more of the locked rows, as they are by then.
 */
export async function holdAdmins(db: Queryable, dialect: Dialect, users: Table<UserRecord>): Promise<Row[]> {
  const wanted = users.where({ isActive: true, isAdmin: true })
  if (!dialect.rowLocks) {
    const column = users.bareColumn('isActive')
    return db(users.name)
      .where(wanted)
      .update({ [column]: db.ref(column) })
      .returning([...users.selection])
  }
  const key = users.column('id')
  const found: Row[] = await db(users.name)
    .where(wanted)
    .select([...users.select(['id'])])
  const keys = found.map((row) => users.value('id', users.read(row, 'id')) as Knex.Value) // a key is never null
  return db(users.name)
    .where((any) => void any.whereIn(key, keys as string[])) // whatever knex may bind
    .where(wanted)
    .select([...users.selection])
    .orderBy(key)
    .forUpdate()
}
