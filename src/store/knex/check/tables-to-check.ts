import type { Knex } from 'knex'
import { bindTables, type HostTables } from '../default-tables'
import { dialectOf } from '../dialect-of'
import type { CheckedTables } from './check-store-tables'

/**
 * Returns the tables to check.
 * @throws ConfigurationError for a client that this store was not tested with, and for options that are unknown or wrong
 */
export function tablesToCheck(knex: Knex, hostTables: HostTables): CheckedTables {
  const dialect = dialectOf(knex)
  return { knex, dialect, tables: bindTables(knex, dialect, hostTables), hostTables }
}
