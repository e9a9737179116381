import type { Knex } from 'knex'
import type { SessionChoice, SessionRecord, SessionStore, SessionWithUser } from '../auth-store'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import { deleteExpired, rowKeyOf } from './delete-expired'
import { updateFound } from './hold-user'
import type { Queryable, Row } from './queryable'
import { rotateSession } from './rotate-session'
import { compiledFor, compiledSelect, slotsOf } from './statements'

/** An expired session may still count as live: a server's clock may be slow, or a request began before the expiry. */
const stillLiveMs = 5 * 60_000

/** The newest first. An expired session makes its browser a known device. An account may have very many before the next purge. */
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

    async findMany(ids) {
      const wanted = new Set(ids.filter((id) => sessions.match({ id }) !== null))
      if (wanted.size === 0) return []
      const rows = await connection.statement<Row[]>('sessions.findMany', (db) =>
        withUsers(db, tables).whereIn(
          sessions.column('id'),
          [...wanted].map((id) => sessions.value('id', id) as Knex.Value),
        ),
      )
      const found: SessionWithUser[] = rows.map((row) => ({ session: sessions.toRecord(row), user: users.toRecord(row) }))
      return found.filter(({ session, user }) => wanted.has(session.id) && session.userId === user.id)
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

function withUser(db: Queryable, tables: Tables, wanted: Partial<SessionRecord>): Knex.QueryBuilder {
  return withUsers(db, tables).where(tables.sessions.where(wanted)).limit(1)
}

function withUsers(db: Queryable, { users, sessions }: Tables): Knex.QueryBuilder {
  return db(sessions.name)
    .join(users.name, users.column('id'), sessions.column('userId'))
    .select([...sessions.selection, ...users.selection])
}

async function insertSession(connection: Connection, tables: Tables, session: SessionRecord): Promise<void> {
  const { sessions } = tables
  if (!isAlwaysTheSame(connection, tables)) {
    const row = sessions.newRow(session)
    return connection.statement('sessions.insert', async (db) => void (await db(sessions.name).insert(row)))
  }
  sessions.toRow(session) // throws if a column cannot hold a value
  await connection.statement('sessions.insert', (db) => connection.dialect.run(db, insertOne(db, tables, sessions.fit(session))))
}

/**
 * The INSERT also returns whether the user has at least `most` rows. Ended sessions count too, because then the database reads only an
 * index. Only then, on MySQL, or if `insertDefaults` fills columns, a second statement looks for sessions to revoke.
 */
async function insertSessionWithin(connection: Connection, tables: Tables, session: SessionRecord, most: number): Promise<number> {
  const { sessions } = tables
  if (!isAlwaysTheSame(connection, tables)) {
    await insertSession(connection, tables, session)
    return endUnused(connection, tables, session, most)
  }
  sessions.toRow(session) // as above: throws if a column cannot hold a value
  const [row] = await connection.statement('sessions.insertWithin', (db) =>
    connection.dialect.run(db, insertAndLook(db, tables, { ...sessions.fit(session), offset: most - 1 })),
  )
  return row?.[FULL] === null ? 0 : endUnused(connection, tables, session, most) // looks too if a host's mapper changed the name
}

function isAlwaysTheSame({ dialect }: Connection, { sessions }: Tables): boolean {
  return dialect.returning && !sessions.hostFillsColumns
}

/** Has only lower-case letters, because a host's name mapper changes other names. */
const FULL = 'sessionsfull'

type Looking = SessionRecord & { readonly offset: number }

const allSlots = ({ sessions }: Tables) => slotsOf<SessionRecord>([...sessions.fields])

const insertOne = compiledFor<SessionRecord>((db, tables) => db(tables.sessions.name).insert(tables.sessions.newRow(allSlots(tables))))

/** Null for an account with fewer rows. On SQLite this takes half the time of a count. */
const insertAndLook = compiledFor<Looking>((db, tables) => {
  const { sessions } = tables
  const slots = slotsOf<Looking>([...sessions.fields, 'offset'])
  const bindings = [sessions.name, sessions.bareColumn('userId'), sessions.value('userId', slots.userId) ?? '', slots.offset, FULL]
  return db(sessions.name)
    .insert(sessions.newRow(slots))
    .returning(db.raw('(select 1 from ?? where ?? = ? limit 1 offset ?) as ??', bindings))
})

function othersOf(db: Queryable, { sessions }: Tables, { id, userId, createdAt }: SessionRecord): Knex.QueryBuilder {
  return db(sessions.name)
    .where(sessions.where({ userId, revokedAt: null }))
    .where(sessions.column('expiresAt'), '>', sessions.value('expiresAt', createdAt))
    .whereNot(sessions.where({ id }))
}

/** If it revoked any, deletes sessions of the user that ended earlier, so that their number stays bounded. */
async function endUnused(connection: Connection, tables: Tables, session: SessionRecord, most: number): Promise<number> {
  const revoked = await revokeUnused(connection, tables, session, most)
  if (revoked > 0) await deleteEnded(connection, tables, session)
  return revoked
}

/** Bounds the duration of the login. Each login leaves at most one more ended session, so even two would bound their number. */
const mostDeleted = 20

/** Keeps those that this login revoked: they stay for their owner to see. */
async function deleteEnded({ statement }: Connection, { sessions }: Tables, { userId, createdAt }: SessionRecord): Promise<void> {
  const expiresAt = sessions.column('expiresAt')
  // Not ordered by id too: rows of one end would then be sorted, and the account may have a million of them.
  const rows = await statement<Row[]>('sessions.insertWithin', (db) =>
    db(sessions.name)
      .where(sessions.where({ userId }))
      .where(expiresAt, '<', sessions.value('expiresAt', createdAt))
      .orderBy(expiresAt)
      .limit(mostDeleted)
      .select([...sessions.select(['id'])]),
  )
  const ids = rows.map((row) => rowKeyOf(sessions, row))
  // By the keys alone: with further conditions, SQLite would read all sessions of the user. An ended session never lives again.
  if (ids.length > 0) await statement('sessions.insertWithin', (db) => db(sessions.name).whereIn(sessions.column('id'), ids).delete())
}

/** MySQL has no LIMIT in a subquery of IN, so on MySQL the store first reads the ids. */
async function revokeUnused({ statement, dialect }: Connection, tables: Tables, session: SessionRecord, most: number): Promise<number> {
  const { sessions } = tables
  const id = sessions.column('id')
  const newestFirst = (['lastSeenAt', 'createdAt', 'id'] as const).map((field) => ({ column: sessions.column(field), order: 'desc' }))
  const beyond = (db: Queryable) =>
    othersOf(db, tables, session)
      .orderBy(newestFirst)
      .offset(most - 1)
  const end = (ids: (db: Queryable) => Knex.QueryBuilder | readonly Knex.Value[]) =>
    statement<number>('sessions.insertWithin', (db) =>
      db(sessions.name)
        .whereIn(id, ids(db) as Knex.QueryBuilder) // whereIn accepts both
        .where(sessions.where({ revokedAt: null }))
        .update(sessions.toRow({ revokedAt: session.createdAt, expiresAt: session.createdAt })),
    )
  if (dialect.returning) return end((db) => beyond(db).select(id))
  const found = await statement<Row[]>('sessions.insertWithin', (db) => beyond(db).select([...sessions.select(['id'])]))
  const ids = found.map((row) => rowKeyOf(sessions, row))
  return ids.length === 0 ? 0 : end(() => ids)
}
