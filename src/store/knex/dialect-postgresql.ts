import type { Dialect } from './dialect'

export const postgresql: Dialect = {
  name: 'postgresql',
  writesInWith: true,
  returning: true,
  rowLocks: true,
  countsMatchedRows: true,
  types: { id: 'uuid', text: 'text', boolean: 'boolean', instant: 'timestamptz(3)' },
  // Text with its zone: the driver would write local time, right only as long as process and offset agree.
  instantToColumn: (instant) => instant.toISOString(),
  instantExpression: null,
  booleanToColumn: (value) => value,
  transaction: (knex, work) => knex.transaction(work, { isolationLevel: 'read committed' }),
  async withSchemaLock(trx, work) {
    // The number is arbitrary; it only has to be the same in every version of this library.
    await trx.raw('select pg_advisory_xact_lock(7303917261)')
    await work()
  },
  tableOptions: async () => '',
  indexesInTable: false,
}
