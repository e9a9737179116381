import { isProduction } from './config/environment'
import { resolveSettings, type SettingsInput } from './config/settings'
import { ConfigurationError } from './errors'
import { type Guards, guardsFor } from './guards/guards'
import { deriveKeys } from './keys'
import { consoleLogger, type Logger, safely } from './logger'
import { hasMethods, isObject, refuseUnknownOptions } from './options'
import type { AuthStore } from './store/auth-store'

export interface GuardsOptions {
  /** `jwtSecret` is required; `tokenDelivery` and `accessCookieName` as the issuing router has them. */
  settings: SettingsInput
  /** Needed by `requireUser` only. */
  store?: AuthStore
  /** The only clock. */
  now?: () => Date
  /** Default: the console. */
  logger?: Logger
}

/**
 * The guards without the router, for an API that only verifies tokens.
 * @throws ConfigurationError naming the missing piece and the fix
 */
export function createGuards(options: GuardsOptions): Guards {
  checkOptions(options)
  const settings = resolveSettings(options.settings, { production: isProduction() })
  return guardsFor({
    settings,
    keys: deriveKeys(settings.jwtSecret),
    store: options.store ?? null,
    now: options.now ?? (() => new Date()),
    logger: safely(options.logger ?? consoleLogger),
  })
}

function checkOptions(options: GuardsOptions): void {
  if (!isObject(options)) throw new ConfigurationError('createGuards() needs options: { settings }.')
  refuseUnknownOptions('createGuards', options, ['settings', 'store', 'now', 'logger'])
  const { store, now, logger } = options
  if (store !== undefined && !hasMethods('find')(store?.users)) {
    throw new ConfigurationError('createGuards: store must be an AuthStore; createKnexStore({ knex }) makes one.')
  }
  if (now !== undefined && typeof now !== 'function')
    throw new ConfigurationError('createGuards: now must be a function that returns a Date.')
  if (logger !== undefined && !hasMethods('info', 'warn', 'error')(logger)) {
    throw new ConfigurationError('createGuards: logger must be an object with the methods info, warn and error.')
  }
}
