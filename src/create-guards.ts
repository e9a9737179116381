import type { AccessTokenClaimsHook } from './claims/ask-for-claims'
import { type GuardSettingsInput, guardSettingNames, type KeySource, resolveGuardSettings } from './config/guard-settings'
import { refuseMisplaced } from './config/misplaced'
import { ConfigurationError } from './errors'
import { discoveredKeys } from './guards/discovered-keys'
import { type GuardContext, type Guards, guardsFor } from './guards/guards'
import { ownKeys, publishedKeys, type TokenKeys } from './guards/token-keys'
import { checkedLanguages } from './http/checked-languages'
import { createHttpClient, type HttpClient } from './http-client'
import { deriveKeyList, secretAccessKey } from './keys'
import { consoleLogger, type Logger, safely } from './logger'
import { hasMethods, isObject, refuseUnknownOptions, requirePrefix } from './options'
import { requireEndpoint, requireStaleSeconds } from './providers/client-options'
import { createKeySet } from './providers/key-set'
import { readJwtKeys } from './session/access-keys'
import { createSetupNotices } from './setup-notices/notices'
import { withSessionGuards } from './step-up/session-guards'
import type { AuthStore } from './store/auth-store'
import type { HostTypes } from './store/host-types'
import type { Languages } from './texts/texts'

export interface GuardsOptions {
  /**
   * Exactly one of `jwtSecret`, `jwtKeys` and `jwksUri`, or `accessTokenIssuer` with `accessTokenAudience` alone, or
   * `tokenDelivery: 'session'` with a `store`; `tokenDelivery` and the cookies' names as the issuing router has them.
   */
  settings: GuardSettingsInput
  /**
   * Needed by `requireUser`, `requireAdmin`, `requireSession`, `requireLiveSession` and `requireFresh`, and by every guard with
   * `tokenDelivery: 'session'`.
   */
  store?: AuthStore
  /** The router's, where it is on the same origin as these pages. `requireLogin` needs it. */
  prefix?: string
  /** For `requireClaim` and `requireRole` with `tokenDelivery: 'session'`, where no token carries them: as the router has it. */
  accessTokenClaims?: AccessTokenClaimsHook
  /** Fetches the keys of `jwksUri` or of the issuer; default: one of its own (10 s, circuit breaker off). */
  httpClient?: HttpClient
  /** How long the last good key set serves while it cannot be read again, in seconds since it was read. Default 86400; 0: off. */
  staleIfErrorSeconds?: number
  /** Texts of refusals in further languages, or other words: as the router has them. */
  languages?: Languages
  /** The only clock. */
  now?: () => Date
  /** Default: the console. */
  logger?: Logger
}

/**
 * The guards without the router, for an API that only verifies tokens. Nothing is fetched before the first token comes.
 * @throws ConfigurationError naming the missing piece and the fix
 */
export function createGuards<Host extends HostTypes = HostTypes>(options: GuardsOptions): Guards<Host> {
  checkOptions(options)
  const { settings, source } = resolveGuardSettings(options.settings)
  const logger = safely(options.logger ?? consoleLogger)
  const ctx: GuardContext = {
    settings,
    tokenKeys: tokenKeysOf(source, options),
    sessionTokenKeys: 'jwtSecret' in source ? deriveKeyList(source.jwtSecret, 'session-token') : null,
    store: options.store ?? null,
    accessTokenClaims: options.accessTokenClaims ?? null,
    now: options.now ?? (() => new Date()),
    texts: checkedLanguages(options.languages, settings.defaultLocale),
    logger,
    notices: createSetupNotices(logger),
    ...(options.prefix !== undefined && { prefix: options.prefix }),
  }
  return withSessionGuards(ctx, guardsFor(ctx)) as Guards<Host> // what the host says of its own data
}

function tokenKeysOf(source: KeySource, { httpClient, now, staleIfErrorSeconds }: GuardsOptions): TokenKeys {
  if ('jwtSecret' in source) return ownKeys([secretAccessKey(deriveKeyList(source.jwtSecret, 'access'))])
  if ('jwtKeys' in source) return ownKeys(readJwtKeys(source.jwtKeys))
  const fetching = {
    httpClient: httpClient ?? createHttpClient(),
    ...(now && { now }),
    ...(staleIfErrorSeconds !== undefined && { staleIfErrorSeconds }),
  }
  if ('none' in source) return ownKeys([])
  if ('issuer' in source) return publishedKeys(discoveredKeys({ issuer: source.issuer, ...fetching }), source.algorithms)
  requireEndpoint('createGuards', 'settings.jwksUri', source.jwksUri)
  return publishedKeys(createKeySet({ jwksUri: source.jwksUri, ...fetching }), source.algorithms)
}

const optionNames = ['settings', 'store', 'prefix', 'accessTokenClaims', 'httpClient', 'staleIfErrorSeconds', 'languages', 'now', 'logger']

function checkOptions(options: GuardsOptions): void {
  if (!isObject(options)) throw new ConfigurationError('createGuards() needs options: { settings }.')
  refuseMisplaced('createGuards', options, { optionNames, settingNames: guardSettingNames })
  refuseUnknownOptions('createGuards', options, optionNames)
  const { store, prefix, httpClient, now, logger } = options
  if (prefix !== undefined) requirePrefix(prefix)
  checkClaimsHook(options)
  if (store !== undefined && !hasMethods('find')(store?.users)) {
    throw new ConfigurationError('createGuards: store must be an AuthStore; createKnexStore({ knex }) makes one.')
  }
  if (store?.sessions !== undefined && !hasMethods('find', 'touch')(store.sessions))
    throw new ConfigurationError('createGuards: the sessions of the store need the methods find() and touch() (docs/store-contract.md).')
  if (httpClient !== undefined && typeof httpClient !== 'function')
    throw new ConfigurationError('createGuards: httpClient must be a function, such as createHttpClient() returns.')
  requireStaleSeconds('createGuards', options.staleIfErrorSeconds)
  if (now !== undefined && typeof now !== 'function')
    throw new ConfigurationError('createGuards: now must be a function that returns a Date.')
  if (logger !== undefined && !hasMethods('info', 'warn', 'error')(logger)) {
    throw new ConfigurationError('createGuards: logger must be an object with the methods info, warn and error.')
  }
}

/** A token that was verified carries its claims already. */
function checkClaimsHook({ accessTokenClaims, settings }: GuardsOptions): void {
  if (accessTokenClaims === undefined) return
  if (typeof accessTokenClaims !== 'function') throw new ConfigurationError('createGuards: accessTokenClaims must be a function.')
  if (settings?.tokenDelivery !== 'session')
    throw new ConfigurationError(
      "createGuards: accessTokenClaims is for tokenDelivery 'session'; an access token carries its claims itself.",
    )
}
