import type { Knex } from 'knex'
import { bindTables, type HostTables } from '../default-tables'
import { dialectOf } from '../dialect-of'
import type { CheckedTables } from './check-store-tables'

/** @throws ConfigurationError for a client this store was not tested with, and for options that cannot be meant */
export function tablesToCheck(knex: Knex, hostTables: HostTables): CheckedTables {
  const dialect = dialectOf(knex)
  return { knex, dialect, tables: bindTables(knex, dialect, hostTables), hostTables }
}
