import type { Knex } from 'knex'
import type { SessionChoice, SessionRecord, SessionStore, SessionWithUser } from '../auth-store'
import { compiledSelect } from './compiled-for'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import { deleteExpired } from './delete-expired'
import { insertSession, insertSessionWithin } from './insert-session'
import type { Queryable, Row } from './queryable'
import { rotateSession } from './rotate-session'

import { updateFound } from './update-found'

/**
 * How long after its expiry a session may still count as live: for a server whose clock is slow, and for a request that began before the
 * expiry.
 */
const stillLiveMs = 5 * 60_000

/**
 * How many expired sessions of an account `revokeForUser` revokes, the newest first. Such a session lets nobody in, but makes its browser a
 * known device. The number is bounded, because an account may have very many of them before the next purge.
 */
const mostExpired = 500

export function sessionsStore(connection: Connection, tables: Tables): SessionStore {
  const { users, sessions } = tables
  const { dialect } = connection

  /** Revokes sessions, also expired ones: see `stillLiveMs`. */
  const revoke = (verb: string, condition: (query: Knex.QueryBuilder, db: Queryable) => Knex.QueryBuilder, at: Date) =>
    connection.statement<number>(verb, (db) =>
      // Sets `expiresAt` too, because `purgeExpired` finds ended sessions by `expiresAt`.
      condition(db(sessions.name).where(sessions.where({ revokedAt: null })), db).update(sessions.toRow({ revokedAt: at, expiresAt: at })),
    )

  return {
    insert: (session) => insertSession(connection, tables, session),

    insertWithin: (session, most) => insertSessionWithin(connection, tables, session, most),

    async find(wanted) {
      if (!sessions.match(wanted)) return null
      const [row] = await connection.statement('sessions.find', (db) =>
        'id' in wanted ? byId(db, dialect, tables, wanted) : byToken(db, dialect, tables, wanted),
      )
      if (!row) return null
      const found: SessionWithUser = { session: sessions.toRecord(row), user: users.toRecord(row) }
      const { session, user } = found
      const isWanted = Object.entries(wanted).every(([field, value]) => session[field as keyof SessionRecord] === value) // `field` is a session's field
      return isWanted && session.userId === user.id ? found : null
    },

    async lock(id, at) {
      const where = sessions.match({ id })
      if (!where) return null
      const [row] = await connection.statement<Row[]>('sessions.lock', (db) => {
        const query = alive(db(sessions.name).where(where), tables, at)
        if (dialect.rowLocks) return query.select([...sessions.selection]).forUpdate()
        // SQLite has no row locks. An UPDATE that changes no value locks the file.
        const column = sessions.bareColumn('generation')
        return query.update({ [column]: db.ref(column) }).returning([...sessions.selection])
      })
      const session = row ? sessions.toRecord(row) : null
      return session?.id === id ? session : null
    },

    rotate: (rotation) => rotateSession(connection, tables, rotation),

    async update(id, changes) {
      const where = sessions.match({ id, revokedAt: null })
      const row = sessions.toRow(changes)
      return where !== null && Object.keys(row).length > 0 && updateFound(connection, 'sessions.update', sessions, where, row)
    },

    async touch(id, seenBy, { lastSeenAt, expiresAt }, tokenHash) {
      const where = sessions.match({ id, tokenHash, revokedAt: null })
      if (!where) return false
      const changes = sessions.toRow({ lastSeenAt, expiresAt })
      const moved = await connection.statement<number>('sessions.touch', (db) =>
        db(sessions.name)
          .where(where)
          .where(sessions.column('lastSeenAt'), '<=', sessions.value('lastSeenAt', seenBy))
          .where(sessions.column('expiresAt'), '>', sessions.value('expiresAt', lastSeenAt))
          .update(changes),
      )
      return moved === 1
    },

    async listForUser(userId, at) {
      const where = sessions.match({ userId })
      if (!where) return []
      const rows = await connection.statement<Row[]>('sessions.listForUser', (db) =>
        alive(db(sessions.name).where(where), tables, at)
          .select([...sessions.selection])
          .orderBy([sessions.column('createdAt'), sessions.column('id')]),
      )
      return rows.map(sessions.toRecord).filter((session) => session.userId === userId) // a host's collation may treat two keys as equal
    },

    async revoke({ id, ...others }, at) {
      const ids: readonly string[] = Array.isArray(id) ? id : [id]
      const wanted = ids.map((one) => sessions.match({ id: one, ...others })).filter((where) => where !== null)
      if (wanted.length === 0) return false
      const condition = (query: Knex.QueryBuilder) =>
        query.where((either) => {
          for (const where of wanted) either.orWhere((one) => one.where(where))
        })
      return (await revoke('sessions.revoke', condition, at)) > 0
    },

    async revokeForUser(userId, at, { exceptId, ...openedBy } = {}) {
      const owned = sessions.match({ userId })
      if (!owned) return 0
      const kept = exceptId === undefined ? null : sessions.match({ id: exceptId })
      // The database reads only the live sessions of an account and the newest expired ones, however many have ended.
      const end = sessions.value('expiresAt', new Date(at.getTime() - stillLiveMs))
      const ofUser = (query: Knex.QueryBuilder, db: Queryable) => {
        const expired = db(sessions.name)
          .where(owned)
          .where(sessions.where({ revokedAt: null }))
          .where(sessions.column('expiresAt'), '<=', end)
        const newest = expired
          .select({ ended: sessions.column('expiresAt') })
          .orderBy(sessions.column('expiresAt'), 'desc')
          .limit(mostExpired)
        const first = db.queryBuilder().min('ended').from(newest.as('newest'))
        const chosen = query.where(owned).where(sessions.column('expiresAt'), '>=', db.raw('coalesce((?), ?)', [first, end as Knex.Value]))
        return whereOpenedBy(kept ? chosen.whereNot(kept) : chosen, sessions, openedBy)
      }
      return revoke('sessions.revokeForUser', ofUser, at)
    },

    deleteExpired: (expired) => deleteExpired(connection, 'sessions.deleteExpired', sessions, 'expiresAt', expired),
  }
}

function whereOpenedBy(query: Knex.QueryBuilder, sessions: Tables['sessions'], { amr, provider }: SessionChoice): Knex.QueryBuilder {
  if (provider !== undefined && sessions.fields.has('provider')) return sessions.whereExactly(query, { provider })
  const method = provider === undefined ? amr : 'ext'
  if (method === undefined || !sessions.fields.has('amr')) return query
  // The column has a list of methods. No method contains the name of another method.
  return query.where(sessions.column('amr'), 'like', `%${method}%`)
}

function alive(query: Knex.QueryBuilder, { sessions }: Tables, at: Date): Knex.QueryBuilder {
  return query.where(sessions.where({ revokedAt: null })).where(sessions.column('expiresAt'), '>', sessions.value('expiresAt', at))
}

const byId = compiledSelect<Pick<SessionRecord, 'id'>>(['id'], withUser)
const byToken = compiledSelect<Pick<SessionRecord, 'tokenHash' | 'kind'>>(['tokenHash', 'kind'], withUser)

function withUser(db: Queryable, { users, sessions }: Tables, wanted: Partial<SessionRecord>): Knex.QueryBuilder {
  return db(sessions.name)
    .join(users.name, users.column('id'), sessions.column('userId'))
    .where(sessions.where(wanted))
    .select([...sessions.selection, ...users.selection])
    .limit(1)
}
