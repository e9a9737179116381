import type { UserTokenStore } from '../auth-store'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import { insertRecord } from './insert-record'
import { updateReturning } from './update-returning'

export function userTokensStore(connection: Connection, { userTokens }: Tables): UserTokenStore {
  return {
    insert: (newToken) => insertRecord(connection, 'userTokens.insert', userTokens, newToken),

    async consume(tokenHash, purpose, at) {
      const open = userTokens.match({ tokenHash, purpose, usedAt: null })
      if (!open) return null
      const unexpired = [userTokens.column('expiresAt'), '>', userTokens.value('expiresAt', at)] as const
      const [row] = await connection.guarded('userTokens.consume', (db) =>
        updateReturning(db, connection.dialect, userTokens, (query) => query.where(open).where(...unexpired), { usedAt: at }),
      )
      const token = row ? userTokens.toRecord(row) : null
      return token?.tokenHash === tokenHash && token.purpose === purpose ? token : null
    },

    // Expired ones too: to a process whose clock is behind they are still open.
    async consumeAllForUser(userId, at, purpose) {
      const open = userTokens.match(purpose === undefined ? { userId, usedAt: null } : { userId, usedAt: null, purpose })
      if (!open) return 0
      const changes = userTokens.toRow({ usedAt: at })
      return connection.statement<number>('userTokens.consumeAllForUser', (db) => db(userTokens.name).where(open).update(changes))
    },
  }
}
