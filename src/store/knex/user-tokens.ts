import type { Knex } from 'knex'
import type { UserTokenPurpose, UserTokenStore } from '../auth-store'
import { neverEnds } from '../user-records'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import { deleteExpired } from './delete-expired'
import { insertRecord } from './insert-record'
import type { Row } from './queryable'

import { updateReturning } from './statements'

const abandonedAfterMs = 7 * 86_400_000

export function userTokensStore(connection: Connection, { users, userTokens }: Tables): UserTokenStore {
  /** Without `activatedAt`, only a used activation token shows that an account was activated. So `deleteExpired` must never delete it. */
  const kept = (purpose: UserTokenPurpose, at: Date) =>
    purpose === 'ACTIVATION' && !users.fields.has('activatedAt') ? { expiresAt: neverEnds(at) } : {}

  return {
    insert: (newToken) => insertRecord(connection, 'userTokens.insert', userTokens, newToken),

    async find(tokenHash) {
      const where = userTokens.match({ tokenHash })
      if (!where) return null
      const rows = await connection.statement<Row[]>('userTokens.find', (db) =>
        db(userTokens.name)
          .where(where)
          .select([...userTokens.selection]),
      )
      return rows.map(userTokens.toRecord).find((token) => token.tokenHash === tokenHash) ?? null
    },

    async consume(tokenHash, purpose, at) {
      const open = userTokens.match({ tokenHash, purpose, usedAt: null })
      if (!open) return null
      const unexpired = [userTokens.column('expiresAt'), '>', userTokens.value('expiresAt', at)] as const
      const [row] = await connection.guarded('userTokens.consume', (db) =>
        updateReturning(db, connection.dialect, userTokens, (query) => query.where(open).where(...unexpired), {
          usedAt: at,
          ...kept(purpose, at),
        }),
      )
      const token = row ? userTokens.toRecord(row) : null
      return token?.tokenHash === tokenHash && token.purpose === purpose ? token : null
    },

    // Also invalidates expired tokens, because a process whose clock is slow still accepts them.
    async consumeAllForUser(userId, at, purpose) {
      const open = userTokens.match({ userId, usedAt: null })
      if (!open) return 0
      const column = userTokens.column('purpose')
      const changes = userTokens.toRow({ usedAt: at })
      const [expiresAt, end] = [userTokens.column('expiresAt'), userTokens.value('expiresAt', at)]
      return connection.statement<number>('userTokens.consumeAllForUser', (db) => {
        const earlier = db.raw('case when ?? > ? then ? else ?? end', [expiresAt, end, end, expiresAt])
        const query = db(userTokens.name).where(open)
        const meant = purpose === undefined ? query.whereNot(column, 'UNDO') : query.whereIn(column, [purpose].flat())
        return meant.update({ ...changes, [userTokens.bareColumn('expiresAt')]: earlier })
      })
    },

    async listOpen(userId, purpose, at) {
      const open = userTokens.match({ userId, purpose, usedAt: null })
      if (!open) return []
      const rows = await connection.statement<Row[]>('userTokens.listOpen', (db) =>
        db(userTokens.name)
          .where(open)
          .where(userTokens.column('expiresAt'), '>', userTokens.value('expiresAt', at))
          .orderBy([userTokens.column('createdAt'), userTokens.column('id')])
          .select([...userTokens.selection]),
      )
      // A host's collation may treat two keys as equal.
      return rows.map(userTokens.toRecord).filter((token) => token.userId === userId && token.purpose === purpose)
    },

    async wasConsumed(userId, purpose) {
      const where = userTokens.match({ userId, purpose })
      if (!where) return false
      const [usedAt, expiresAt] = [userTokens.column('usedAt'), userTokens.column('expiresAt')]
      const rows = await connection.statement<Row[]>('userTokens.wasConsumed', (db) =>
        db(userTokens.name)
          .where(where)
          .where(usedAt, '<', db.ref(expiresAt))
          .select([...userTokens.select(['userId', 'purpose'])]),
      )
      // A host's collation may treat two keys as equal.
      return rows.some((row) => userTokens.read(row, 'userId') === userId && userTokens.read(row, 'purpose') === purpose)
    },

    deleteExpired: (expired) =>
      deleteExpired(connection, 'userTokens.deleteExpired', userTokens, 'expiresAt', expired, (query) =>
        users.fields.has('activatedAt') ? query.whereNot(recentActivation(expired.before)) : query.whereNot(redeemedActivation),
      ),
  }

  /** `users.deleteAbandoned` still needs these: their expiry shows when a pending account was abandoned. */
  function recentActivation(before: Date): (query: Knex.QueryBuilder) => void {
    const since = new Date(before.getTime() - abandonedAfterMs)
    return (query) =>
      query
        .where(userTokens.where({ purpose: 'ACTIVATION' }))
        .whereNull(userTokens.column('usedAt'))
        .where(userTokens.column('expiresAt'), '>', userTokens.value('expiresAt', since))
  }

  /** Without the column `activatedAt`, only used tokens show that an account was activated. */
  function redeemedActivation(query: Knex.QueryBuilder): void {
    query
      .where(userTokens.where({ purpose: 'ACTIVATION' }))
      .whereNotNull(userTokens.column('usedAt'))
      .whereRaw('?? < ??', [userTokens.column('usedAt'), userTokens.column('expiresAt')])
  }
}
