import type { Knex } from 'knex'
import type { RouterSettings } from '../config/every-setting'
import { convertText } from '../config/settings'
import { ConfigurationError } from '../errors'
import type { PasswordHasher } from '../passwords/password-hasher'
import type { Provider } from '../providers/passport-provider'
import type { TableFinding } from '../store/auth-store'
import { checkStoreTables } from '../store/knex/check/check-store-tables'
import { tablesToCheck } from '../store/knex/check/tables-to-check'
import type { HostTables } from '../store/knex/default-tables'
import { tableNeeds } from './table-needs'
import { withoutIgnored } from './without-ignored'

/** The table options of `createKnexStore`, and the options that decide which columns are needed and how wide they must be. */
export interface CheckTablesOptions extends HostTables {
  /** The router's settings. Without them, the tables of passkeys and of login by email are not checked. */
  settings?: Partial<RouterSettings>
  /** The router's providers, whose keys are stored in `identities.provider`. */
  providers?: Record<string, Provider>
  /** The router's hasher. Without it the hash column must be wide enough for an argon2id hash (97 characters). */
  passwordHasher?: PasswordHasher
  /** Keys of findings to leave out. */
  ignore?: readonly string[]
}

/**
 * Compares the tables with what the store writes, and returns the findings, errors first. `createAuthRouter` does the same at its start.
 * Never throws for a finding. A database that cannot be reached is a finding too.
 *
 * @param knex the instance that `createKnexStore` gets
 * @throws ConfigurationError for a knex client other than `pg`, `mysql2` and `better-sqlite3`, and for options that are unknown or wrong
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
