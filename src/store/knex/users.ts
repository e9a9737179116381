import type { Knex } from 'knex'
import type { UserRecord, UserStore } from '../auth-store'
import type { Connection } from './connection'
import type { HostTables, Tables } from './default-tables'
import { deleteAbandoned } from './delete-abandoned'
import { deleteUser, listDeletions } from './delete-user'
import { isUnwritableText } from './driver-errors'
import { holdAdmins, holdUser, touchedColumn, updateFound } from './hold-user'
import { insertUser } from './insert-record'
import { selectUsers } from './list-users'
import type { Queryable, Row } from './queryable'
import { compiledFor, compiledSelect, slotsOf } from './statements'
import type { Table } from './table'

export function usersStore(connection: Connection, tables: Tables, hostTables: HostTables): UserStore {
  const { users } = tables
  // A host's collation may treat two strings as equal.
  const only = (rows: Row[], wanted: Partial<UserRecord>): UserRecord | null => {
    const exact = (user: UserRecord) => user.id === (wanted.id ?? user.id) && user.email === (wanted.email ?? user.email)
    return rows.map(users.toRecord).find(exact) ?? null
  }

  const read = async (verb: string, wanted: { id: string } | { email: string }): Promise<UserRecord | null> => {
    if (!users.match(wanted)) return null
    const { dialect } = connection
    const rows = await connection.statement(verb, (db) =>
      'id' in wanted ? byId(db, dialect, tables, wanted) : byEmail(db, dialect, tables, wanted),
    )
    return only(rows, wanted)
  }

  return {
    fields: users.fields,
    ids: users.ids,
    ...(users.hostFields && { hostFields: users.hostFields.rules }),

    find: (id) => read('users.find', { id }),

    findByEmail: (email) =>
      read('users.findByEmail', { email }).catch((error: unknown) => {
        if (isUnwritableText(error)) return null // a person can enter any text into a login form
        throw error
      }),

    insert: (newUser, origin = { by: 'command' }) => insertUser(connection, users, newUser, origin),

    async update(id, changes) {
      const where = users.match({ id })
      if (!where) return false
      const row = users.toRow(changes)
      if (Object.keys(row).length === 0) return (await read('users.update', { id })) !== null
      return updateFound(connection, 'users.update', users, where, row)
    },

    async lock(id) {
      if (!users.match({ id })) return null
      return only(await connection.statement('users.lock', (db) => holdUser(db, connection.dialect, users, { id })), { id })
    },

    recordLogin: (seen, at, { hashedPassword } = {}) =>
      recordLogin(connection, tables, seen, { lastLoginAt: at, ...(hashedPassword !== undefined && { hashedPassword }) }),

    async advanceTotpStep(id, step) {
      const where = users.match({ id })
      if (!where || !Number.isSafeInteger(step) || !users.fields.has('totpLastStep')) return false
      const last = users.column('totpLastStep')
      const changed = await connection.statement<number>('users.advanceTotpStep', (db) =>
        db(users.name)
          .where(where)
          .where((earlier) => earlier.whereNull(last).orWhere(last, '<', step))
          .update(users.toRow({ totpLastStep: step })),
      )
      return changed === 1
    },

    delete: (deletion) => deleteUser(connection, tables, hostTables, deletion),

    listDeletions: (due) => listDeletions(connection, tables, due),

    deleteAbandoned: (expired) => deleteAbandoned(connection, tables, hostTables, expired),

    list: (listing) => selectUsers(connection, users, listing),

    async lockAdmins() {
      if (!users.fields.has('isAdmin')) return []
      const rows = await connection.together('users.lockAdmins', (db) => holdAdmins(db, connection.dialect, users))
      const admins = rows.map(users.toRecord).filter((user) => user.isAdmin && user.isActive)
      return admins.toSorted((one, other) => (one.id < other.id ? -1 : 1))
    },
  }
}

const byId = compiledSelect<{ id: string }>(['id'], selectUser)
const byEmail = compiledSelect<{ email: string }>(['email'], selectUser)

function selectUser(db: Queryable, { users }: Tables, wanted: Partial<UserRecord>): Knex.QueryBuilder {
  return db(users.name)
    .where(users.where(wanted))
    .select([...users.selection])
}

type Seen = Pick<UserRecord, 'id' | 'hashedPassword'>
type Stamp = Pick<UserRecord, 'lastLoginAt'> & Partial<Pick<UserRecord, 'hashedPassword'>>

/** Waits for another change, then checks again: PostgreSQL in the UPDATE (EvalPlanQual, manual 13.2.1), InnoDB in a locking read. */
async function recordLogin(connection: Connection, tables: Tables, seen: Seen, stamp: Stamp): Promise<UserRecord | null> {
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

/** Writes the row even if the table has no column for the login time, because the UPDATE locks the row. */
function stampInOneStatement(db: Queryable, users: Table<UserRecord>, seen: Seen, stamp: Stamp): Knex.QueryBuilder {
  const touched = touchedColumn(users)
  const wanted = db(users.name).where(users.where({ isActive: true }))
  return users
    .whereExactly(wanted, seen)
    .update({ [touched]: db.ref(touched), ...users.toRow(stamp) })
    .returning([...users.selection])
}

/** Nearly every login keeps the hash. */
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
