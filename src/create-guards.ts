import { type GuardSettingsInput, type KeySource, resolveGuardSettings } from './config/guard-settings'
import { ConfigurationError } from './errors'
import { type Guards, guardsFor } from './guards/guards'
import { ownKeys, publishedKeys, type TokenKeys } from './guards/token-keys'
import { createHttpClient, type HttpClient } from './http-client'
import { deriveKeyList, secretAccessKey } from './keys'
import { consoleLogger, type Logger, safely } from './logger'
import { hasMethods, isObject, refuseUnknownOptions } from './options'
import { requireEndpoint } from './providers/client-options'
import { createKeySet } from './providers/key-set'
import { readJwtKeys } from './session/access-keys'
import type { AuthStore } from './store/auth-store'

export interface GuardsOptions {
  /** Exactly one of `jwtSecret`, `jwtKeys` and `jwksUri`; `tokenDelivery` and `accessCookieName` as the issuing router has them. */
  settings: GuardSettingsInput
  /** Needed by `requireUser`, `requireAdmin` and `requireSession` only. */
  store?: AuthStore
  /** Fetches the keys of `jwksUri`; default: one of its own (10 s, circuit breaker off). */
  httpClient?: HttpClient
  /** The only clock. */
  now?: () => Date
  /** Default: the console. */
  logger?: Logger
}

/**
 * The guards without the router, for an API that only verifies tokens. Nothing is fetched before the first token comes.
 * @throws ConfigurationError naming the missing piece and the fix
 */
export function createGuards(options: GuardsOptions): Guards {
  checkOptions(options)
  const { settings, source } = resolveGuardSettings(options.settings)
  return guardsFor({
    settings,
    tokenKeys: tokenKeysOf(source, options),
    sessionTokenKeys: 'jwtSecret' in source ? deriveKeyList(source.jwtSecret, 'session-token') : null,
    store: options.store ?? null,
    now: options.now ?? (() => new Date()),
    logger: safely(options.logger ?? consoleLogger),
  })
}

function tokenKeysOf(source: KeySource, { httpClient, now }: GuardsOptions): TokenKeys {
  if ('jwtSecret' in source) return ownKeys([secretAccessKey(deriveKeyList(source.jwtSecret, 'access'))])
  if ('jwtKeys' in source) return ownKeys(readJwtKeys(source.jwtKeys))
  const { jwksUri, algorithms } = source
  requireEndpoint('createGuards', 'settings.jwksUri', jwksUri)
  return publishedKeys(createKeySet({ jwksUri, httpClient: httpClient ?? createHttpClient(), ...(now && { now }) }), algorithms)
}

function checkOptions(options: GuardsOptions): void {
  if (!isObject(options)) throw new ConfigurationError('createGuards() needs options: { settings }.')
  refuseUnknownOptions('createGuards', options, ['settings', 'store', 'httpClient', 'now', 'logger'])
  const { store, httpClient, now, logger } = options
  if (store !== undefined && !hasMethods('find')(store?.users)) {
    throw new ConfigurationError('createGuards: store must be an AuthStore; createKnexStore({ knex }) makes one.')
  }
  if (store?.sessions !== undefined && !hasMethods('find', 'touch')(store.sessions))
    throw new ConfigurationError('createGuards: the sessions of the store need the methods find() and touch() (docs/store-contract.md).')
  if (httpClient !== undefined && typeof httpClient !== 'function')
    throw new ConfigurationError('createGuards: httpClient must be a function, such as createHttpClient() returns.')
  if (now !== undefined && typeof now !== 'function')
    throw new ConfigurationError('createGuards: now must be a function that returns a Date.')
  if (logger !== undefined && !hasMethods('info', 'warn', 'error')(logger)) {
    throw new ConfigurationError('createGuards: logger must be an object with the methods info, warn and error.')
  }
}
