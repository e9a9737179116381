import type { Knex } from 'knex'
import type { RefreshTokenRecord, RefreshTokenStore } from '../auth-store'
import { compiledFor, slotsOf } from './compiled-for'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import { deleteExpired } from './delete-expired'
import { rotate } from './rotate-refresh-token'
import type { Row } from './table'
import { updateReturning } from './update-returning'

export function refreshTokensStore(connection: Connection, tables: Tables): RefreshTokenStore {
  const { refreshTokens, successors, users } = tables

  return {
    async insert(token) {
      const row = refreshTokens.newRow(token) // refuses what no column can hold
      const { dialect } = connection
      const isAlwaysTheSame = dialect.returning && !refreshTokens.hostFillsColumns
      await connection.statement('refreshTokens.insert', async (db) =>
        isAlwaysTheSame ? dialect.run(db, insertToken(db, tables, token)) : db(refreshTokens.name).insert(row),
      )
    },

    async find(tokenHash) {
      const where = refreshTokens.match({ tokenHash })
      if (!where) return null
      const [row] = await connection.statement<Row[]>('refreshTokens.find', (db) =>
        db(refreshTokens.name)
          .where(where)
          .select([...refreshTokens.selection])
          .limit(1),
      )
      const token = row ? refreshTokens.toRecord(row) : null
      return token?.tokenHash === tokenHash ? token : null
    },

    async findWithSuccessor(tokenHash) {
      const where = refreshTokens.match({ tokenHash })
      if (!where) return null
      const [row] = await connection.statement<Row[]>('refreshTokens.findWithSuccessor', (db) =>
        db(refreshTokens.name)
          .join(users.name, users.column('id'), refreshTokens.column('userId'))
          .leftJoin({ [successors.name]: refreshTokens.name }, (on) =>
            on
              .on(successors.column('familyId'), refreshTokens.column('familyId'))
              .andOn(successors.column('parentId'), refreshTokens.column('id')),
          )
          .where(where)
          .select([...refreshTokens.selection, ...users.selection, ...successors.selection])
          .limit(1),
      )
      const token = row && refreshTokens.toRecord(row)
      if (!row || token?.tokenHash !== tokenHash) return null
      const [user, successor] = [users.toRecord(row), successors.read(row, 'parentId') === null ? null : successors.toRecord(row)]
      return token.userId === user.id && (successor === null || successor.parentId === token.id) ? { token, successor, user } : null
    },

    rotate: (rotation) => rotate(connection, tables, rotation),

    async hasLiveFamily(userId, { from, before }, at) {
      const unrevoked = refreshTokens.match({ userId, revokedAt: null })
      if (!unrevoked) return false
      const rows = await connection.statement<Row[]>('refreshTokens.hasLiveFamily', (db) =>
        db(refreshTokens.name)
          .where(unrevoked)
          .where(refreshTokens.column('createdAt'), '>=', refreshTokens.value('createdAt', from))
          .where(refreshTokens.column('createdAt'), '<', refreshTokens.value('createdAt', before))
          .where(refreshTokens.column('familyExpiresAt'), '>', refreshTokens.value('familyExpiresAt', at))
          .select([...refreshTokens.select(['userId'])]),
      )
      return rows.some((row) => refreshTokens.read(row, 'userId') === userId) // a host's collation may call two keys equal
    },

    async revokeFamily(familyId, at) {
      // A row without a family, in a table that lets it be null, is of no family: `is null` would mean all such rows.
      const family = familyId === null ? null : refreshTokens.match({ familyId, revokedAt: null })
      return family ? revoke('refreshTokens.revokeFamily', (query) => query.where(family), at) : 0
    },

    async revokeForUser(userId, at, { exceptFamilyId } = {}) {
      const owned = refreshTokens.match({ userId, revokedAt: null })
      if (!owned) return 0
      const kept = exceptFamilyId === undefined ? null : refreshTokens.match({ familyId: exceptFamilyId })
      return revoke('refreshTokens.revokeForUser', (query) => (kept ? query.where(owned).whereNot(kept) : query.where(owned)), at)
    },

    deleteExpired: (expired) => deleteExpired(connection, 'refreshTokens.deleteExpired', refreshTokens, 'familyExpiresAt', expired),
  }

  /**
   * Spent rows are revoked too, and that matters: a rotation in flight holds its spent row, so the update waits for it,
   * and the next round sees the child it inserted. No row changed: no rotation in flight and no child missed.
   */
  function revoke(verb: string, condition: (query: Knex.QueryBuilder) => Knex.QueryBuilder, at: Date): Promise<number> {
    const fields = refreshTokens.select(['usedAt', 'expiresAt'])
    return connection.whole(verb, async () => {
      let live = 0
      for (;;) {
        const rows = await connection.guarded(verb, (db) =>
          updateReturning(db, connection.dialect, refreshTokens, condition, { revokedAt: at }, fields),
        )
        if (rows.length === 0) return live
        live += rows.filter((row) => refreshTokens.read(row, 'usedAt') === null && refreshTokens.read(row, 'expiresAt') > at).length
      }
    })
  }
}

const insertToken = compiledFor<RefreshTokenRecord>((db, { refreshTokens }) =>
  db(refreshTokens.name).insert(refreshTokens.newRow(slotsOf<RefreshTokenRecord>([...refreshTokens.fields]))),
)
