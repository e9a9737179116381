import type { Knex } from 'knex'
import { ConfigurationError } from '../../core/errors'
import type { Dialect } from './dialect'
import { mysql } from './dialect-mysql'
import { postgresql } from './dialect-postgresql'
import { sqlite } from './dialect-sqlite'

/** @throws ConfigurationError for a client that this store was not tested with */
export function dialectOf(knex: Knex): Dialect {
  if (typeof knex !== 'function')
    throw new ConfigurationError('createKnexStore() needs `knex`: the instance knex({ client, ... }) returns.')
  const { dialect, driverName }: Partial<Knex.Client> = knex.client
  const found = DIALECTS.get(`${String(dialect)}/${String(driverName)}`)
  if (found) return found
  throw new ConfigurationError(
    `createKnexStore() does not support the knex client "${String(driverName ?? dialect)}"; create knex with client: 'pg', 'mysql2' or 'better-sqlite3'.`,
  )
}

const DIALECTS: ReadonlyMap<string, Dialect> = new Map([
  ['postgresql/pg', postgresql],
  ['mysql/mysql2', mysql],
  ['sqlite3/better-sqlite3', sqlite],
])
