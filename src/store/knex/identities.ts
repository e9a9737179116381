import type { Knex } from 'knex'
import type { IdentityStore } from '../auth-store'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import { insertRecord } from './insert-record'
import type { Row } from './table'

export function identitiesStore(connection: Connection, { users, identities }: Tables): IdentityStore {
  return {
    async findWithUser(provider, subject) {
      const where = identities.match({ provider, subject })
      if (!where) return null
      const rows = await connection.statement<Row[]>('identities.findWithUser', (db) =>
        db(identities.name)
          .join(users.name, users.column('id'), identities.column('userId'))
          .where(where)
          .select([...identities.selection, ...users.selection]),
      )
      // Compared again: 'AbC', 'abc' and 'AbC ' are three subjects whatever a host's collation says.
      const found = rows.map((row) => ({ identity: identities.toRecord(row), user: users.toRecord(row) }))
      return (
        found.find(({ identity, user }) => identity.provider === provider && identity.subject === subject && identity.userId === user.id) ??
        null
      )
    },

    async listForUser(userId) {
      const where = identities.match({ userId })
      if (!where) return []
      const order = [identities.column('createdAt'), identities.column('id')]
      const rows = await connection.statement<Row[]>('identities.listForUser', (db) =>
        db(identities.name)
          .where(where)
          .select([...identities.selection])
          .orderBy(order),
      )
      return rows.map(identities.toRecord)
    },

    insert: (newIdentity) => insertRecord(connection, 'identities.insert', identities, newIdentity),

    async recordLogin({ userId, provider, subject }, at) {
      const link = identities.match({ userId, provider, subject })
      if (!link) return null
      const rows = connection.dialect.writesInWith
        ? await connection.statement('identities.recordLogin', (db) => stampInOneStatement(db, link, at))
        : await connection.together('identities.recordLogin', (db) =>
            connection.dialect.rowLocks ? holdThenStamp(db, userId, link, at) : stampUserThenIdentity(db, userId, link, at),
          )
      return rows[0] ? users.toRecord(rows[0]) : null
    },

    async deleteForUser(userId, provider) {
      const where = identities.match(provider === undefined ? { userId } : { userId, provider })
      if (!where) return 0
      return connection.statement<number>('identities.deleteForUser', (db) => db(identities.name).where(where).delete())
    },
  }

  /**
   * Three parts, run in order because each takes its rows from the one before: hold the user, stamp the link, stamp the
   * user. Nothing is stamped on stale sight: a lock or an update that had to wait looks at the row again as it is then
   * (EvalPlanQual, PostgreSQL manual 13.2.1), so a user deactivated or a link deleted meanwhile leaves its part empty,
   * and with it every later one. Only rows of joined tables are used; a sub-select would keep the old sight.
   */
  async function stampInOneStatement(db: Knex, link: object, at: Date): Promise<Row[]> {
    const held = db(identities.name)
      .join(users.name, users.column('id'), identities.column('userId'))
      .where(link)
      .where(users.where({ isActive: true }))
      .select({ heldidentity: identities.column('id'), helduser: users.column('id') })
      .forUpdate(users.name)
    const stamped = db.raw('update ?? set ?? = ? from held where ?? = held.heldidentity returning held.helduser', [
      identities.name,
      identities.bareColumn('lastLoginAt'),
      identities.value('lastLoginAt', at),
      identities.column('id'),
    ])
    // A table without the column is written too, since that is what holds the row.
    const stamp = users.fields.has('lastLoginAt')
      ? db.raw('?? = ?', [users.bareColumn('lastLoginAt'), users.value('lastLoginAt', at)])
      : db.raw('?? = ??', [users.bareColumn('isActive'), users.column('isActive')])
    const owner = db.raw(
      `update ?? set ? from stamped where ?? = stamped.helduser returning ${users.selection.map(() => '??').join(', ')}`,
      [users.name, stamp, users.column('id'), ...users.selection],
    )
    return db.with('held', held).with('stamped', stamped).with('owner', owner).select('*').from('owner')
  }

  /** Where the first write holds everything, what it saw stays so. A user without the column is written too. */
  async function stampUserThenIdentity(db: Knex, userId: string, link: object, at: Date): Promise<Row[]> {
    const active = users.bareColumn('isActive')
    const linked = db(identities.name).where(link)
    const rows = await db(users.name)
      .where(users.where({ id: userId, isActive: true }))
      .whereExists(linked.clone().select(db.raw('1')))
      .update({ [active]: db.ref(active), ...users.toRow({ lastLoginAt: at }) })
      .returning([...users.selection])
    if (rows.length > 0) await linked.update(identities.toRow({ lastLoginAt: at }))
    return rows
  }

  /**
   * The user first, like everybody who holds one: STRAIGHT_JOIN reads, and so locks, in the order written. Then both rows
   * are as they are now and stay so.
   */
  async function holdThenStamp(db: Knex, userId: string, link: object, at: Date): Promise<Row[]> {
    const both = () =>
      db(users.name)
        .joinRaw('straight_join ??', [identities.name])
        .where(users.where({ id: userId, isActive: true }))
        .where(link)
    const rows: Row[] = await both()
      .select([...users.selection])
      .forUpdate()
    if (rows.length === 0) return []
    await both().update({
      [identities.column('lastLoginAt')]: identities.value('lastLoginAt', at),
      ...(users.fields.has('lastLoginAt') && { [users.column('lastLoginAt')]: users.value('lastLoginAt', at) }),
    })
    return rows.map((row) => ({ ...row, ...users.asRow({ lastLoginAt: at }) }))
  }
}
