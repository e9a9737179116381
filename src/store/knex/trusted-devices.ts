import type { TrustedDeviceStore } from '../auth-store'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import { deleteExpired } from './delete-expired'
import { updateFound } from './hold-user'
import { insertRecord } from './insert-record'
import { databaseName, type Row } from './queryable'

export function trustedDevicesStore(connection: Connection, { trustedDevices }: Tables): TrustedDeviceStore {
  return {
    insert: (device) => insertRecord(connection, 'trustedDevices.insert', trustedDevices, device),

    async find(tokenHash) {
      const where = trustedDevices.match({ tokenHash })
      if (!where) return null
      const rows = await connection.statement<Row[]>('trustedDevices.find', (db) =>
        db(trustedDevices.name)
          .where(where)
          .select([...trustedDevices.selection]),
      )
      return rows.map(trustedDevices.toRecord).find((device) => device.tokenHash === tokenHash) ?? null
    },

    async recordUse(id, userId, use) {
      const where = trustedDevices.match({ id, userId })
      return where !== null && updateFound(connection, 'trustedDevices.recordUse', trustedDevices, where, trustedDevices.toRow(use))
    },

    async listForUser(userId, at) {
      const where = trustedDevices.match({ userId })
      if (!where) return []
      const rows = await connection.statement<Row[]>('trustedDevices.listForUser', (db) =>
        db(trustedDevices.name)
          .where(where)
          .where(trustedDevices.column('endsAt'), '>', trustedDevices.value('endsAt', at))
          .select([...trustedDevices.selection])
          .orderBy([
            { column: trustedDevices.column('createdAt'), order: 'desc' },
            { column: trustedDevices.column('id'), order: 'desc' },
          ]),
      )
      return rows.map(trustedDevices.toRecord).filter((device) => device.userId === userId)
    },

    async deleteForUser(userId, { exceptTokenHash, ...choice } = {}) {
      const where = trustedDevices.match({ userId, ...choice })
      if (!where) return 0
      return connection.statement<number>('trustedDevices.deleteForUser', (db) => {
        const query = db(trustedDevices.name).where(where)
        const kept = trustedDevices.column('tokenHash')
        return (exceptTokenHash === undefined ? query : query.whereNot(kept, trustedDevices.value('tokenHash', exceptTokenHash))).delete()
      })
    },

    deleteExpired: (expired) => deleteExpired(connection, 'trustedDevices.deleteExpired', trustedDevices, 'endsAt', expired),

    isPresent: () =>
      connection.statement('trustedDevices.isPresent', (db) => connection.dialect.mayUse(db, databaseName(db, trustedDevices.name))),
  }
}
