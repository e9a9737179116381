import type { Knex } from 'knex'
import type { RouterSettings } from '../../../core/config/every-setting'
import { convertText } from '../../../core/config/settings'
import { ConfigurationError } from '../../../core/errors'
import type { PasswordHasher } from '../../../passwords/password-types'
import type { Provider } from '../../../providers/passport-provider'
import type { TableFinding } from '../../../store/auth-store'
import { checkStoreTables } from '../../../store/knex/check/check-store-tables'
import { tablesToCheck } from '../../../store/knex/check/tables-to-check'
import type { HostTables } from '../../../store/knex/default-tables'
import { tableNeeds } from './table-needs'
import { withoutIgnored } from './without-ignored'

/**
 * The options of `checkTables`: the table options of `createKnexStore`, some options of the router, and `ignore`. The router's options
 * determine which columns the tables need, and how long the columns must be.
 */
export interface CheckTablesOptions extends HostTables {
  /** The router's settings. Without settings, `checkTables` does not check the tables for passkeys and login by email. */
  settings?: Partial<RouterSettings>
  /** The router's providers. The column `identities.provider` stores the keys of this object. */
  providers?: Record<string, Provider>
  /** The router's hasher. Without a hasher, the hash column must be long enough for an argon2id hash (97 characters). */
  passwordHasher?: PasswordHasher
  /** The keys of findings that the result leaves out. */
  ignore?: readonly string[]
}

/**
 * Compares the tables with the columns that the store writes. Returns the findings, the errors first. `createAuthRouter` runs the same
 * check when it starts. The function never throws because of a finding. An unreachable database is also a finding.
 *
 * @param knex the instance that `createKnexStore` gets
 * @throws ConfigurationError for a knex client other than `pg`, `mysql2` and `better-sqlite3`, and for unknown or wrong options
 */
export async function checkTables(knex: Knex, options: CheckTablesOptions = {}): Promise<TableFinding[]> {
  const { settings, providers, passwordHasher, ignore = [], ...hostTables } = options
  if (!isListOfKeys(ignore)) throw new ConfigurationError("checkTables(): ignore must be a list of keys such as 'users.email:unique'.")
  const given = settings && convertText(settings)
  const needs = tableNeeds({ settings: given ?? null, providers: providers ?? null, passwordHasher: passwordHasher ?? null })
  return withoutIgnored(await checkStoreTables(tablesToCheck(knex, hostTables), needs), ignore)
}

export function isListOfKeys(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((key) => typeof key === 'string' && key !== '')
}
