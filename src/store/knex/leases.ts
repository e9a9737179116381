import type { Knex } from 'knex'
import type { LeaseStore } from '../auth-store'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import { databaseName, type Row } from './queryable'

export function leasesStore(connection: Connection, { leases }: Tables): LeaseStore {
  const named = (id: string) => ({ [leases.bareColumn('id')]: leases.value('id', id) as Knex.Value })
  /** One statement. Returns true if it changed the row. */
  const change = async (verb: string, id: string, run: (query: Knex.QueryBuilder) => Knex.QueryBuilder) =>
    (await connection.statement<number>(verb, (db) => run(db(leases.name).where(named(id))))) > 0
  const makeRow = (verb: string, id: string) =>
    connection.statement(verb, (db) =>
      db(leases.name)
        .insert(leases.newRow({ id, holder: null, leasedUntil: null, ranAt: null }))
        .onConflict(leases.bareColumn('id'))
        .ignore(),
    )
  const changeOrMake: typeof change = async (verb, id, run) => {
    if (await change(verb, id, run)) return true
    await makeRow(verb, id)
    return change(verb, id, run)
  }
  return {
    take: ({ id, holder, now, until, ranBefore }) =>
      changeOrMake('leases.take', id, (query) =>
        query
          .where((free) =>
            free.whereNull(leases.column('leasedUntil')).orWhere(leases.column('leasedUntil'), '<=', leases.value('leasedUntil', now)),
          )
          .where((due) => {
            const ranAt = leases.column('ranAt')
            due.whereNull(ranAt).orWhere(ranAt, '<=', leases.value('ranAt', ranBefore)).orWhere(ranAt, '>', leases.value('ranAt', now))
          })
          .update(leases.toRow({ holder, leasedUntil: until })),
      ),
    renew: ({ id, holder, until }) =>
      change('leases.renew', id, (query) => query.where(leases.column('holder'), holder).update(leases.toRow({ leasedUntil: until }))),
    async release({ id, holder }) {
      await change('leases.release', id, (query) =>
        query.where(leases.column('holder'), holder).update(leases.toRow({ leasedUntil: null })),
      )
    },
    async recordRun(id, at) {
      await changeOrMake('leases.recordRun', id, (query) => query.update(leases.toRow({ ranAt: at })))
    },
    async find(id) {
      const [row] = await connection.statement<Row[]>('leases.find', (db) =>
        db(leases.name)
          .where(named(id))
          .select([...leases.selection]),
      )
      return row ? leases.toRecord(row) : null
    },
    isPresent: () => connection.statement('leases.isPresent', (db) => connection.dialect.mayUse(db, databaseName(db, leases.name))),
  }
}
