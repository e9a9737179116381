import type { Readiness } from '../../../context'
import type { Settings } from '../../../core/config/every-setting'
import { describeError, type Logger } from '../../../core/logger'
import type { Mailer } from '../../../core/mailer'
import type { PasswordHasher } from '../../../passwords/password-types'
import type { Provider } from '../../../providers/passport-provider'
import type { AuthStore, TableFinding } from '../../../store/auth-store'
import { checkStoreTables } from '../../../store/knex/check/check-store-tables'
import { checkedTablesOf } from '../../../store/knex/knex-store'
import { createReadiness } from './readiness'
import { tableNeeds } from './table-needs'
import { UNCHECKED } from './unchecked'
import { withoutIgnored } from './without-ignored'

/** The options of the router that determine the check of the tables. */
interface Checked {
  readonly store: AuthStore
  readonly providers?: Record<string, Provider>
  readonly passwordHasher?: PasswordHasher
  readonly mailer?: Mailer
  readonly checkTables?: false | { readonly ignore: readonly string[] }
}

/** Starts the check of the store's tables. Returns null if there is nothing to check. */
export function readinessOf(options: Checked, settings: Settings, logger: Logger, now: () => Date): Readiness | null {
  const { checkTables } = options
  if (checkTables === false || UNCHECKED in globalThis) return null
  const check = checkOf(options, settings, logger)
  const ignore = checkTables?.ignore ?? []
  return check && createReadiness({ check: async () => withoutIgnored(await check(), ignore), logger, now })
}

function checkOf({ store, providers, passwordHasher, mailer }: Checked, settings: Settings, logger: Logger) {
  const checked = checkedTablesOf(store)
  const needs = tableNeeds({
    settings: { ...settings },
    providers: providers ?? {},
    passwordHasher: passwordHasher ?? null,
    hasMailer: mailer !== undefined,
  })
  if (checked) return () => checkStoreTables(checked, needs)
  return typeof store.check === 'function' ? () => askAdapter(store, logger) : null
}

/** Calls an adapter's `check()`. If the check fails, the function logs the error and returns no finding. */
async function askAdapter(store: AuthStore, logger: Logger): Promise<TableFinding[]> {
  try {
    return (await store.check?.()) ?? []
  } catch (error) {
    logger.warn({ error: describeError(error) }, 'doorward: check() of the store failed. doorward accepts requests without the check.')
    return []
  }
}
