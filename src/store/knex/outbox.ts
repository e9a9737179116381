import type { Knex } from 'knex'
import type { OutboxRecord, OutboxStore } from '../auth-store'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import { deleteExpired } from './delete-expired'
import { databaseName, type Queryable, type Row } from './queryable'
import type { Table } from './table'

export function outboxStore(connection: Connection, { outbox }: Tables): OutboxStore {
  const change = async (verb: string, wanted: Partial<OutboxRecord>, run: (query: Knex.QueryBuilder) => Knex.QueryBuilder) => {
    const where = outbox.match(wanted)
    if (!where) return false
    return (await connection.statement<number>(verb, (db) => run(waiting(db(outbox.name), outbox).where(where)))) > 0
  }
  return {
    async insert(events) {
      const rows = events.map((event) =>
        outbox.newRow({ ...event, tries: 0, nextAt: event.createdAt, leasedUntil: null, deliveredAt: null }),
      )
      if (rows.length > 0) await connection.statement('outbox.insert', (db) => db(outbox.name).insert(rows))
    },

    async take({ now, until, most }) {
      const found = await connection.statement<Row[]>('outbox.take', (db) =>
        oldestOfUser(db, outbox, free(db(outbox.name), outbox, now))
          .orderBy(outbox.column('seq'))
          .limit(most)
          .select([...outbox.select(['id'])]),
      )
      if (found.length === 0) return []
      const ids = found.map((row) => outbox.value('id', outbox.read(row, 'id')) as Knex.Value) // a key is never null
      const rows = await connection.guarded('outbox.take', (db) =>
        lease(db, outbox, (query) => free(query.whereIn(outbox.column('id'), ids), outbox, now), {
          until,
          returning: connection.dialect.returning,
        }),
      )
      return rows.map((row) => ({ ...outbox.toRecord(row), leasedUntil: until })).sort((one, other) => one.seq - other.seq)
    },

    markDelivered: (id, at) =>
      change('outbox.markDelivered', { id }, (query) => query.update(outbox.toRow({ deliveredAt: at, leasedUntil: null }))),

    markFailed: async ({ id, leasedUntil, nextAt }) =>
      leasedUntil !== null &&
      change('outbox.markFailed', { id }, (query) =>
        query
          // A column of whole seconds can hold up to a second less or more. Another lease ends much later.
          .where(outbox.column('leasedUntil'), '<=', outbox.value('leasedUntil', new Date(leasedUntil.getTime() + 1_000)))
          .increment(outbox.bareColumn('tries'), 1)
          .update(outbox.toRow({ nextAt, leasedUntil: null })),
      ),

    discard: (id) => change('outbox.discard', { id }, (query) => query.delete()),

    async status() {
      const [counted] = await connection.statement<Row[]>('outbox.status', (db) =>
        waiting(db(outbox.name), outbox).select(
          db.raw('count(*) as waiting, sum(case when ?? > 0 then 1 else 0 end) as failing', [outbox.column('tries')]),
        ),
      )
      const [oldest] = await connection.statement<Row[]>('outbox.status', (db) =>
        waiting(db(outbox.name), outbox)
          .orderBy(outbox.column('seq'))
          .limit(1)
          .select([...outbox.select(['createdAt'])]),
      )
      return {
        waiting: Number(counted?.['waiting'] ?? 0),
        failing: Number(counted?.['failing'] ?? 0),
        oldestAt: oldest ? outbox.read(oldest, 'createdAt') : null,
      }
    },

    deleteDelivered: (expired) => deleteExpired(connection, 'outbox.deleteDelivered', outbox, 'deliveredAt', expired, { key: 'seq' }),

    isPresent: () => connection.statement('outbox.isPresent', (db) => connection.dialect.mayUse(db, databaseName(db, outbox.name))),
  }
}

function waiting(query: Knex.QueryBuilder, outbox: Table<OutboxRecord>): Knex.QueryBuilder {
  return query.whereNull(outbox.column('deliveredAt'))
}

function free(query: Knex.QueryBuilder, outbox: Table<OutboxRecord>, now: Date): Knex.QueryBuilder {
  const at = outbox.value('nextAt', now)
  return waiting(query, outbox)
    .where(outbox.column('nextAt'), '<=', at)
    .where((lease) => lease.whereNull(outbox.column('leasedUntil')).orWhere(outbox.column('leasedUntil'), '<=', at))
}

/** Events of one user commit in the order of `seq`, because each transaction holds the user's row. So no earlier event can appear later. */
function oldestOfUser(db: Queryable, outbox: Table<OutboxRecord>, query: Knex.QueryBuilder): Knex.QueryBuilder {
  const earlier = (field: keyof OutboxRecord) => `earlier.${outbox.bareColumn(field)}`
  return query.whereNotExists(
    db(`${outbox.name} as earlier`)
      .where(earlier('userId'), db.ref(outbox.column('userId')))
      .whereNull(earlier('deliveredAt'))
      .where(earlier('seq'), '<', db.ref(outbox.column('seq')))
      .select(db.raw('1')),
  )
}

async function lease(
  db: Queryable,
  outbox: Table<OutboxRecord>,
  chosen: (query: Knex.QueryBuilder) => Knex.QueryBuilder,
  { until, returning }: { until: Date; returning: boolean },
): Promise<Row[]> {
  const row = outbox.toRow({ leasedUntil: until })
  if (returning)
    return chosen(db(outbox.name))
      .update(row)
      .returning([...outbox.selection])
  const rows: Row[] = await chosen(db(outbox.name))
    .select([...outbox.selection])
    .forUpdate()
  const ids = rows.map((found) => outbox.value('id', outbox.read(found, 'id')) as Knex.Value) // as above
  if (ids.length > 0) await db(outbox.name).whereIn(outbox.column('id'), ids).update(row)
  return rows
}
