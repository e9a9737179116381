import type { Expired } from '../auth-store'
import { canHold } from './column-values'
import { poolConnection } from './connection'
import type { HostKnex } from './counter-rows'
import { deleteExpired } from './delete-expired'
import { dialectOf } from './dialect-of'
import { bindTable, type TableDefinition } from './table'

export interface AuditRecord {
  /** Made before the first attempt. If doorward sends a row twice, the database therefore writes it once. */
  id: string
  name: string
  userId: string | null
  payload: string
  requestId: string | null
  createdAt: Date
}

export interface AuditRows {
  /** Uses a connection of the pool, outside of every other transaction. Existing rows stay unchanged. */
  insert(records: readonly AuditRecord[]): Promise<void>
  deleteOlder(older: Expired): Promise<number>
  fitting(column: 'userId' | 'requestId', text: unknown): string | null
}

const definition: TableDefinition<AuditRecord> = {
  table: 'auth_audit_log',
  prefix: 'auditlog',
  keyIsGiven: true,
  optional: {},
  fields: {
    id: { column: 'id', kind: 'id' },
    name: { column: 'name', kind: 'text', maxLength: 64 },
    userId: { column: 'user_id', kind: 'text', maxLength: 64 },
    payload: { column: 'payload', kind: 'text' },
    requestId: { column: 'request_id', kind: 'text', maxLength: 128 },
    createdAt: { column: 'created_at', kind: 'instant' },
  },
}

/** @throws ConfigurationError for a knex client other than `pg`, `mysql2` and `better-sqlite3` */
export function bindAuditRows(knex: HostKnex): AuditRows {
  const dialect = dialectOf(knex)
  const connection = poolConnection(knex, dialect)
  const table = bindTable(definition, {}, { knex, dialect, userIds: 'uuid' })
  return {
    async insert(records) {
      const rows = records.map((record) => table.newRow(record))
      await connection.statement('auditLog.insert', (db) => db(table.name).insert(rows).onConflict(table.bareColumn('id')).ignore())
    },
    deleteOlder: (older) => deleteExpired(connection, 'auditLog.deleteOlder', table, 'createdAt', older),
    fitting(column, text) {
      const { maxLength } = definition.fields[column]
      return text !== null && canHold('text', text, maxLength) ? String(text) : null
    },
  }
}
