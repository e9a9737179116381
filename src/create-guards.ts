import { isProduction } from './config/environment'
import { resolveSettings, type SettingsInput } from './config/settings'
import { type Guards, guardsFor } from './guards/guards'
import { deriveKeys } from './keys'
import { consoleLogger, type Logger } from './logger'
import { refuseUnknownOptions } from './options'
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
  refuseUnknownOptions('createGuards', options, ['settings', 'store', 'now', 'logger'])
  const settings = resolveSettings(options.settings, { production: isProduction() })
  return guardsFor({
    settings,
    keys: deriveKeys(settings.jwtSecret),
    store: options.store ?? null,
    now: options.now ?? (() => new Date()),
    logger: options.logger ?? consoleLogger,
  })
}
