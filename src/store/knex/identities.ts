import { randomUUID } from 'node:crypto'
import type { Knex } from 'knex'
import type { IdentityRecord, IdentityStore } from '../auth-store'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import type { Row } from './table'
import { updateReturning } from './update-returning'

export function identitiesStore(connection: Connection, { users, identities }: Tables): IdentityStore {
  return {
    async findWithUser(provider, subject) {
      const where = identities.match({ provider, subject })
      if (!where) return null
      const rows = await connection.statement<Row[]>('identities.findWithUser', (db) =>
        db(identities.name)
          .join(users.name, users.column('id'), identities.column('userId'))
          .where(where)
          .select([...identities.selection, ...users.selection])
          .limit(1),
      )
      if (!rows[0]) return null
      const identity = identities.toRecord(rows[0])
      // Compared again: 'AbC', 'abc' and 'AbC ' are three subjects whatever a host's collation says.
      return identity.provider === provider && identity.subject === subject ? { identity, user: users.toRecord(rows[0]) } : null
    },

    async listForUser(userId) {
      const where = identities.match({ userId })
      if (!where) return []
      const order = [identities.column('createdAt'), identities.column('id')]
      const rows = await connection.statement<Row[]>('identities.listForUser', (db) =>
        db(identities.name).where(where).select(identities.selection).orderBy(order),
      )
      return rows.map(identities.toRecord)
    },

    async insert(newIdentity) {
      const identity: IdentityRecord = { ...newIdentity, id: randomUUID() }
      const row = identities.toRow(identity)
      await connection.statement('identities.insert', (db) => db(identities.name).insert(row))
      return identity
    },

    async recordLogin({ userId, provider, subject }, at) {
      const link = identities.match({ userId, provider, subject })
      if (!link) return null
      const rows = connection.dialect.writesInWith
        ? await connection.statement('identities.recordLogin', (db) => stampInOneStatement(db, link, at))
        : await connection.together('identities.recordLogin', (db) => stampUserThenIdentity(db, userId, link, at))
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
    const owner = db.raw(
      `update ?? set ?? = ? from stamped where ?? = stamped.helduser returning ${users.selection.map(() => '??').join(', ')}`,
      [users.name, users.bareColumn('lastLoginAt'), users.value('lastLoginAt', at), users.column('id'), ...users.selection],
    )
    return db.with('held', held).with('stamped', stamped).with('owner', owner).select('*').from('owner')
  }

  async function stampUserThenIdentity(db: Knex, userId: string, link: object, at: Date): Promise<Row[]> {
    const active = users.where({ id: userId, isActive: true })
    const linked = db(identities.name).where(link)
    const rows = await updateReturning(db, users, (query) => query.where(active).whereExists(linked.clone().select(db.raw('1'))), {
      lastLoginAt: at,
    })
    if (rows.length > 0) await linked.update(identities.toRow({ lastLoginAt: at }))
    return rows
  }
}
