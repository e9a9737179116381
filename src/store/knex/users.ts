import type { Knex } from 'knex'
import type { UserRecord, UserStore } from '../auth-store'
import { compiledSelect } from './compiled-for'
import type { Connection } from './connection'
import type { HostTables, Tables } from './default-tables'
import { deleteAbandoned } from './delete-abandoned'
import { isUnwritableText } from './driver-errors'
import { holdAdmins } from './hold-admins'
import { holdUser } from './hold-user'
import { insertUser } from './insert-record'
import { selectUsers } from './list-users'
import type { Queryable, Row } from './queryable'
import { recordLogin } from './record-login'

import { updateFound } from './update-found'

export function usersStore(connection: Connection, tables: Tables, hostTables: HostTables): UserStore {
  const { users } = tables
  // Compares the rows again, because a host's collation may treat two strings as equal.
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
