import type { Knex } from 'knex'
import type { UserRecord } from '../auth-store'
import { compiledFor, slotsOf } from './compiled-for'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import { holdUser, touchedColumn } from './hold-user'
import type { Queryable, Row } from './queryable'
import type { Table } from './table'

type Seen = Pick<UserRecord, 'id' | 'hashedPassword'>
type Stamp = Pick<UserRecord, 'lastLoginAt'> & Partial<Pick<UserRecord, 'hashedPassword'>>

/**
 * Sets the last login of a user, if the user is active and the hash has not changed. If another transaction changes the row, this function
 * waits and then checks the changed row. PostgreSQL checks the row in the UPDATE (EvalPlanQual, PostgreSQL manual 13.2.1). InnoDB checks
 * the row in a locking read.
 */
export async function recordLogin(connection: Connection, tables: Tables, seen: Seen, stamp: Stamp): Promise<UserRecord | null> {
  const { users } = tables
  const { id, hashedPassword } = seen
  // Nobody can log in to a row without a hash, and `null = null` must not count as a match.
  if (hashedPassword === null || !users.match({ id, hashedPassword })) return null
  users.toRow(stamp) // rejects a hash that no column can hold, before a statement is sent
  const { dialect } = connection
  const rows = await connection.guarded<Row[]>('users.recordLogin', (db) => {
    if (!dialect.returning) return holdThenStamp(db, connection, users, { id, hashedPassword }, stamp)
    if (stamp.hashedPassword !== undefined) return stampInOneStatement(db, users, { id, hashedPassword }, stamp)
    return dialect.run(db, stampTime(db, tables, { id, hashedPassword, lastLoginAt: stamp.lastLoginAt }))
  })
  return rows.map(users.toRecord).find((user) => user.id === id) ?? null
}

/**
 * Returns the statement that records a login. It writes the row even if the table has no column for the login time, because the UPDATE
 * locks the row.
 */
function stampInOneStatement(db: Queryable, users: Table<UserRecord>, seen: Seen, stamp: Stamp): Knex.QueryBuilder {
  const touched = touchedColumn(users)
  const wanted = db(users.name).where(users.where({ isActive: true }))
  return users
    .whereExactly(wanted, seen)
    .update({ [touched]: db.ref(touched), ...users.toRow(stamp) })
    .returning([...users.selection])
}

/** The statement of a login that keeps the hash, as nearly every login does. */
const stampTime = compiledFor<Seen & Stamp>((db, { users }) =>
  stampInOneStatement(db, users, slotsOf<Seen>(['id', 'hashedPassword']), slotsOf<Pick<Stamp, 'lastLoginAt'>>(['lastLoginAt'])),
)

async function holdThenStamp(db: Queryable, { dialect }: Connection, users: Table<UserRecord>, seen: Seen, stamp: Stamp): Promise<Row[]> {
  const rows = await holdUser(db, dialect, users, { id: seen.id, isActive: true })
  const isSeen = (user: UserRecord) => user.id === seen.id && user.hashedPassword === seen.hashedPassword
  const held = rows.filter((row) => isSeen(users.toRecord(row)))
  const changes = users.toRow(stamp)
  if (held.length > 0 && Object.keys(changes).length > 0)
    await db(users.name)
      .where(users.where({ id: seen.id }))
      .update(changes)
  return held.map((row) => ({ ...row, ...users.asRow(stamp) }))
}
