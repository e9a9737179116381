import type { SessionStore } from '../auth-store'
import { compiledSelect } from './compiled-for'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import { deleteExpired } from './delete-expired'
import type { Row } from './table'

export function sessionsStore(connection: Connection, tables: Tables): SessionStore {
  const { users, sessions } = tables
  return {
    async insert(session) {
      const row = sessions.newRow(session)
      await connection.statement('sessions.insert', (db) => db(sessions.name).insert(row))
    },

    async findWithUser(sessionHash) {
      if (!sessions.match({ sessionHash })) return null
      const [row] = await connection.statement('sessions.findWithUser', (db) => withUser(db, connection.dialect, tables, { sessionHash }))
      if (!row) return null
      const found = { session: sessions.toRecord(row), user: users.toRecord(row) }
      return found.session.sessionHash === sessionHash && found.session.userId === found.user.id ? found : null
    },

    async touch(id, seenBy, { lastSeenAt, expiresAt }) {
      const where = sessions.match({ id })
      if (!where) return false
      const changes = sessions.toRow({ lastSeenAt, expiresAt })
      const moved = await connection.statement<number>('sessions.touch', (db) =>
        db(sessions.name).where(where).where(sessions.column('lastSeenAt'), '<=', sessions.value('lastSeenAt', seenBy)).update(changes),
      )
      return moved === 1
    },

    async listForUser(userId) {
      const where = sessions.match({ userId })
      if (!where) return []
      const order = [sessions.column('createdAt'), sessions.column('id')]
      const rows = await connection.statement<Row[]>('sessions.listForUser', (db) =>
        db(sessions.name)
          .where(where)
          .select([...sessions.selection])
          .orderBy(order),
      )
      return rows.map(sessions.toRecord).filter((session) => session.userId === userId)
    },

    async delete(userId, id) {
      const where = sessions.match({ userId, id })
      if (!where) return false
      return (await connection.statement<number>('sessions.delete', (db) => db(sessions.name).where(where).delete())) === 1
    },

    async deleteForUser(userId, { exceptId } = {}) {
      const where = sessions.match({ userId })
      if (!where) return 0
      const kept = exceptId === undefined ? null : sessions.match({ id: exceptId })
      return connection.statement<number>('sessions.deleteForUser', (db) => {
        const doomed = db(sessions.name).where(where)
        return (kept ? doomed.whereNot(kept) : doomed).delete()
      })
    },

    deleteExpired: (expired) => deleteExpired(connection, 'sessions.deleteExpired', sessions, 'expiresAt', expired),
  }
}

const withUser = compiledSelect<{ sessionHash: string }>(['sessionHash'], (db, { users, sessions }, wanted) =>
  db(sessions.name)
    .join(users.name, users.column('id'), sessions.column('userId'))
    .where(sessions.where(wanted))
    .select([...sessions.selection, ...users.selection])
    .limit(1),
)
