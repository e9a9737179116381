import type { Knex } from 'knex'
import type { SessionRecord } from '../auth-store'
import { compiledFor, slotsOf } from './compiled-for'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import { rowKeyOf } from './next-ended'
import type { Queryable, Row } from './queryable'

export async function insertSession(connection: Connection, tables: Tables, session: SessionRecord): Promise<void> {
  const { sessions } = tables
  if (!isAlwaysTheSame(connection, tables)) {
    const row = sessions.newRow(session)
    return connection.statement('sessions.insert', async (db) => void (await db(sessions.name).insert(row)))
  }
  sessions.toRow(session) // throws if a column cannot hold a value
  await connection.statement('sessions.insert', (db) => connection.dialect.run(db, insertOne(db, tables, sessions.fit(session))))
}

/**
 * Inserts the session and revokes the user's sessions beyond `most`. The INSERT also returns whether the user has at least `most` rows.
 * Ended sessions count too, because then the database reads only an index. If the user has that many rows, the store looks for sessions to
 * revoke in a second statement. On MySQL, and if `insertDefaults` fills columns, the store always sends the second statement.
 */
export async function insertSessionWithin(connection: Connection, tables: Tables, session: SessionRecord, most: number): Promise<number> {
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

/** The alias of the answer. Has only lower-case letters, because a host's name mapper changes other names. */
const FULL = 'sessionsfull'

type Looking = SessionRecord & { readonly offset: number }

const allSlots = ({ sessions }: Tables) => slotsOf<SessionRecord>([...sessions.fields])

const insertOne = compiledFor<SessionRecord>((db, tables) => db(tables.sessions.name).insert(tables.sessions.newRow(allSlots(tables))))

/** Returns null for an account with fewer rows. On SQLite this takes half the time of a count. */
const insertAndLook = compiledFor<Looking>((db, tables) => {
  const { sessions } = tables
  const slots = slotsOf<Looking>([...sessions.fields, 'offset'])
  const bindings = [sessions.name, sessions.bareColumn('userId'), sessions.value('userId', slots.userId) ?? '', slots.offset, FULL]
  return db(sessions.name)
    .insert(sessions.newRow(slots))
    .returning(db.raw('(select 1 from ?? where ?? = ? limit 1 offset ?) as ??', bindings))
})

/** Selects the other live sessions of the user. */
function othersOf(db: Queryable, { sessions }: Tables, { id, userId, createdAt }: SessionRecord): Knex.QueryBuilder {
  return db(sessions.name)
    .where(sessions.where({ userId, revokedAt: null }))
    .where(sessions.column('expiresAt'), '>', sessions.value('expiresAt', createdAt))
    .whereNot(sessions.where({ id }))
}

/** Revokes sessions beyond `most`. If there were any, deletes sessions of the user that ended earlier, so that their number stays bounded. */
async function endUnused(connection: Connection, tables: Tables, session: SessionRecord, most: number): Promise<number> {
  const revoked = await revokeUnused(connection, tables, session, most)
  if (revoked > 0) await deleteEnded(connection, tables, session)
  return revoked
}

/** Bounds the duration of the login. Each login leaves at most one more ended session, so even two would bound their number. */
const mostDeleted = 20

/** Deletes the oldest of the user's ended sessions, but not those that this login revoked: they stay for their owner to see. */
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

/** Revokes the longest unused sessions beyond `most`. MySQL has no LIMIT in a subquery of IN, so on MySQL the store first reads the ids. */
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
