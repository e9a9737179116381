import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { InvitationRecord, InvitationStore, InvitationUseStore } from '../auth-store'
import type { Connection } from './connection'
import type { HostTables, Tables } from './default-tables'
import { nextEnded, rowKeyOf } from './delete-expired'
import { insertRecord } from './insert-record'
import { databaseName, type Queryable, type Row } from './queryable'

const mostMailed = 100

export function invitationsStore(connection: Connection, tables: Tables, hostTables: HostTables): InvitationStore {
  const { invitations, invitationUses } = tables
  const { dialect } = connection
  const open = (db: Queryable, wanted: Partial<InvitationRecord>, at: Date) =>
    db(invitations.name)
      .where(invitations.where({ ...wanted, revokedAt: null }))
      .where(invitations.column('usesLeft'), '>', invitations.value('usesLeft', 0))
      .where(invitations.column('expiresAt'), '>', invitations.value('expiresAt', at))

  return {
    insert: (invitation) => insertRecord(connection, 'invitations.insert', invitations, invitation),

    async find(wanted) {
      const where = invitations.match(wanted)
      if (!where) return null
      const rows = await connection.statement<Row[]>('invitations.find', (db) =>
        db(invitations.name)
          .where(where)
          .select([...invitations.selection]),
      )
      return rows.map(invitations.toRecord).find((invitation) => meets(invitation, wanted)) ?? null
    },

    async list({ after, limit }) {
      const [made, id] = [invitations.column('createdAt'), invitations.column('id')]
      const position = after && invitations.match({ id: after.id })
      if (after && !position) return []
      const rows = await connection.statement<Row[]>('invitations.list', (db) => {
        const query = db(invitations.name)
        if (after) {
          const at = invitations.value('createdAt', after.createdAt)
          const key = invitations.value('id', after.id) as Knex.Value // `match` found that a key can hold it
          query.where((older) => older.where(made, '<', at).orWhere((twin) => twin.where(made, at).where(id, '<', key)))
        }
        return query
          .orderBy([
            { column: made, order: 'desc' },
            { column: id, order: 'desc' },
          ])
          .limit(limit)
          .select([...invitations.selection])
      })
      return rows.map(invitations.toRecord)
    },

    async listOpenMailed(email, at) {
      if (!invitations.match({ email })) return []
      const rows = await connection.statement<Row[]>('invitations.listOpenMailed', (db) =>
        open(db, { email, isMailed: true }, at)
          .orderBy([invitations.column('createdAt'), invitations.column('id')])
          .limit(mostMailed)
          .select([...invitations.selection]),
      )
      // A host's collation may treat two addresses as equal.
      return rows.map(invitations.toRecord).filter((invitation) => invitation.email === email)
    },

    async consume(id, at) {
      if (!invitations.match({ id })) return null
      const [row] = await connection.guarded<Row[]>('invitations.consume', async (db) => {
        const usesLeft = invitations.bareColumn('usesLeft')
        const oneLess = { [usesLeft]: db.raw('?? - 1', [usesLeft]) }
        if (dialect.returning)
          return open(db, { id }, at)
            .update(oneLess)
            .returning([...invitations.selection])
        // A locking read waits for the row's lock, and then sees the row's new values.
        const rows: Row[] = await open(db, { id }, at)
          .select([...invitations.selection])
          .forUpdate()
        if (rows.length > 0) await db(invitations.name).where(invitations.where({ id })).update(oneLess)
        return rows.map((row) => ({ ...row, [invitations.alias('usesLeft')]: invitations.read(row, 'usesLeft') - 1 }))
      })
      const invitation = row ? invitations.toRecord(row) : null
      return invitation?.id === id ? invitation : null
    },

    async replaceToken(id, tokenHash, at) {
      if (!invitations.match({ id })) return false
      const changes = invitations.toRow({ tokenHash })
      const changed = await connection.statement<number>('invitations.replaceToken', (db) =>
        open(db, { id, isMailed: true }, at).update(changes),
      )
      return changed === 1
    },

    async revoke(id, at) {
      const where = invitations.match({ id, revokedAt: null })
      if (!where) return false
      const changes = invitations.toRow({ revokedAt: at })
      return (await connection.statement<number>('invitations.revoke', (db) => db(invitations.name).where(where).update(changes))) === 1
    },

    /** First the uses, so that a purge that ends between them leaves none without its invitation. */
    async deleteExpired(expired) {
      const ended = (query: Knex.QueryBuilder) =>
        query.where(invitations.column('expiresAt'), '<=', invitations.value('expiresAt', expired.before))
      const rows = await nextEnded(connection, 'invitations.deleteExpired', invitations, 'expiresAt', expired, { where: ended })
      if (rows.length === 0) return 0
      if (hostTables.invitationUses !== false) {
        const ids = rows.map((row) => invitations.read(row, 'id'))
        await connection.statement('invitations.deleteExpired', (db) =>
          db(invitationUses.name).whereIn(invitationUses.column('invitationId'), ids).delete(),
        )
        await nextTurn()
      }
      const keys = rows.map((row) => rowKeyOf(invitations, row))
      return connection.statement<number>('invitations.deleteExpired', (db) =>
        ended(db(invitations.name).whereIn(invitations.column('id'), keys)).delete(),
      )
    },

    isPresent: () =>
      connection.statement('invitations.isPresent', async (db) => {
        const names = [invitations.name, ...(hostTables.invitationUses === false ? [] : [invitationUses.name])]
        for (const name of names) if (!(await dialect.mayUse(db, databaseName(db, name)))) return false
        return true
      }),
  }
}

export function invitationUsesStore(connection: Connection, { invitationUses }: Tables): InvitationUseStore {
  return {
    insert: (use) => insertRecord(connection, 'invitationUses.insert', invitationUses, use),

    async isUsedBy(invitationId, userId) {
      const where = invitationUses.match({ invitationId, userId })
      if (!where) return false
      const rows = await connection.statement<Row[]>('invitationUses.isUsedBy', (db) =>
        db(invitationUses.name)
          .where(where)
          .select([...invitationUses.selection]),
      )
      return rows.map(invitationUses.toRecord).some((use) => use.invitationId === invitationId && use.userId === userId)
    },

    async listForUser(userId) {
      const where = invitationUses.match({ userId })
      if (!where) return []
      const rows = await connection.statement<Row[]>('invitationUses.listForUser', (db) =>
        db(invitationUses.name)
          .where(where)
          .orderBy([invitationUses.column('createdAt'), invitationUses.column('id')])
          .select([...invitationUses.selection]),
      )
      return rows.map(invitationUses.toRecord).filter((use) => use.userId === userId)
    },
  }
}

function meets(invitation: InvitationRecord, wanted: Partial<InvitationRecord>): boolean {
  return Object.entries(wanted).every(([field, value]) => invitation[field as keyof InvitationRecord] === value) // a field of it
}
