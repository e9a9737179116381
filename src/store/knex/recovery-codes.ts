import type { RecoveryCodeStore } from '../auth-store'
import type { Connection } from './connection'
import type { Tables } from './default-tables'

export function recoveryCodesStore(connection: Connection, { users, recoveryCodes }: Tables): RecoveryCodeStore {
  return {
    async replaceForUser(userId, codeHashes) {
      const rows = codeHashes.map((codeHash) => recoveryCodes.newRow({ userId, codeHash, usedAt: null }))
      const old = recoveryCodes.match({ userId })
      const owner = users.match({ id: userId })
      if (!old || !owner) return
      await connection.together('recoveryCodes.replaceForUser', async (db) => {
        // Without this lock, two calls at once would each delete the old set, and both new sets would stay.
        if (connection.dialect.rowLocks) await db(users.name).where(owner).select(users.column('id')).forUpdate()
        await db(recoveryCodes.name).where(old).delete()
        if (rows.length > 0) await db(recoveryCodes.name).insert(rows)
      })
    },

    async consume(userId, codeHash, at) {
      const open = recoveryCodes.match({ userId, codeHash, usedAt: null })
      if (!open) return false
      const changes = recoveryCodes.toRow({ usedAt: at })
      const changed = await connection.statement<number>('recoveryCodes.consume', (db) =>
        db(recoveryCodes.name).where(open).update(changes),
      )
      return changed === 1
    },

    async deleteForUser(userId) {
      const where = recoveryCodes.match({ userId })
      if (!where) return 0
      return connection.statement<number>('recoveryCodes.deleteForUser', (db) => db(recoveryCodes.name).where(where).delete())
    },
  }
}
