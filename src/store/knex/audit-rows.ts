import type { Knex } from 'knex'
import type { Expired } from '../auth-store'
import { canHold } from './column-values'
import { poolConnection } from './connection'
import type { HostKnex } from './counter-rows'
import { deleteExpired } from './delete-expired'
import { dialectOf } from './dialect-of'
import type { Row } from './queryable'
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
  /** Newest first. Equal times are ordered by id. */
  list(wanted: AuditSearch): Promise<AuditRecord[]>
  /** Of this user, with a payload that names a client or an address, in the order of their ids. */
  listTraces(userId: string, afterId: string, most: number): Promise<AuditRecord[]>
  replacePayload(id: string, payload: string): Promise<void>
  /** The users of the events with this name since then. */
  usersSince(name: string, since: Date): Promise<string[]>
  fitting(column: 'userId' | 'requestId', text: unknown): string | null
}

export interface AuditSearch {
  readonly userId?: string | undefined
  readonly name?: string | undefined
  /** Names. */
  readonly except?: readonly string[] | undefined
  /** The first time that counts. */
  readonly from?: Date | undefined
  /** The first time that does not count. */
  readonly to?: Date | undefined
  /** The last row of the previous page. */
  readonly after?: Pick<AuditRecord, 'id' | 'createdAt'> | undefined
  readonly limit: number
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
    async list({ userId, name, except = [], from, to, after, limit }) {
      const wanted = { ...(userId !== undefined && { userId }), ...(name !== undefined && { name }) }
      const equal = Object.keys(wanted).length === 0 ? {} : table.match(wanted)
      if (!equal) return []
      const [at, id] = [table.column('createdAt'), table.column('id')]
      const rows = await connection.statement<Row[]>('auditLog.list', (db) => {
        const query = db(table.name).where(equal)
        if (except.length > 0) query.whereNotIn(table.column('name'), except)
        if (from) query.where(at, '>=', table.value('createdAt', from))
        if (to) query.where(at, '<', table.value('createdAt', to))
        if (after) {
          const [last, key] = [table.value('createdAt', after.createdAt), table.value('id', after.id) as Knex.Value] // a key is never null
          query.where((older) => older.where(at, '<', last).orWhere((twin) => twin.where(at, last).where(id, '<', key)))
        }
        return query
          .orderBy([
            { column: at, order: 'desc' },
            { column: id, order: 'desc' },
          ])
          .limit(limit)
          .select([...table.selection])
      })
      return rows.map(table.toRecord)
    },

    async listTraces(userId, afterId, most) {
      const payload = table.column('payload')
      const rows = await connection.statement<Row[]>('auditLog.listTraces', (db) => {
        const query = db(table.name)
          .where(table.where({ userId }))
          .where((traces) => void traces.where(payload, 'like', '%"clientKey":"%').orWhere(payload, 'like', '%"addressDigest":"%'))
        if (afterId !== '') query.where(table.column('id'), '>', table.value('id', afterId) as Knex.Value) // as above
        return query
          .orderBy(table.column('id'))
          .limit(most)
          .select([...table.selection])
      })
      return rows.map(table.toRecord)
    },

    async replacePayload(id, payload) {
      await connection.statement('auditLog.replacePayload', (db) =>
        db(table.name).where(table.where({ id })).update(table.toRow({ payload })),
      )
    },

    async usersSince(name, since) {
      const rows = await connection.statement<Row[]>('auditLog.usersSince', (db) =>
        db(table.name)
          .where(table.where({ name }))
          .where(table.column('createdAt'), '>=', table.value('createdAt', since))
          .select([...table.select(['userId'])]),
      )
      return [...new Set(rows.map((row) => table.read(row, 'userId')).filter((id) => id !== null))]
    },

    fitting(column, text) {
      const { maxLength } = definition.fields[column]
      return text !== null && canHold('text', text, maxLength) ? String(text) : null
    },
  }
}
