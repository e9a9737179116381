import {
  type GuardSettings,
  type GuardSettingsInput,
  guardSettingNames,
  type KeySource,
  resolveGuardSettings,
} from '../core/config/guard-settings'
import { refuseMisplaced } from '../core/config/settings'
import { ConfigurationError } from '../core/errors'
import { createHttpClient, type HttpClient } from '../core/http-client'
import { type AccessKey, deriveKeyList, deriveKeys, secretAccessKey } from '../core/keys'
import { consoleLogger, type Logger, safely } from '../core/logger'
import { createSetupWarnings } from '../core/setup-warnings'
import type { Languages } from '../core/texts/phrase-book'
import { type Guards, guardsFor } from '../guards/guards'
import type { GuardContext } from '../guards/refusing'
import { withSessionGuards } from '../guards/session-guards'
import { discoveredKeys, ownKeys, publishedKeys, type TokenKeys } from '../guards/token-keys'
import { checkedLanguages } from '../http/locale'
import { hasMethods, isObject, refuseUnknownOptions, requirePrefix } from '../options'
import { requireEndpoint, requireStaleSeconds } from '../providers/client-options'
import { createKeySet } from '../providers/key-set'
import { readJwtKeys } from '../sessions/access-keys'
import type { AccessTokenClaimsHook } from '../sessions/ask-for-claims'
import { ownCookies } from '../sessions/cookies'
import type { AuthStore } from '../store/auth-store'
import type { HostTypes } from '../store/host-types'

export interface GuardsOptions {
  /**
   * Pass exactly one source of keys: `jwtSecret`, `jwtKeys` or `jwksUri`, or `accessTokenIssuer` with `accessTokenAudience`.
   * `tokenDelivery: 'session'` with a `store` needs no keys. Set `tokenDelivery` and the names of the cookies as in the router that issues
   * the tokens.
   */
  settings: GuardSettingsInput
  /**
   * The store. `requireUser`, `requireAdmin`, `requireSession`, `requireLiveSession` and `requireFresh` need the store. With
   * `tokenDelivery: 'session'` every guard needs the store.
   */
  store?: AuthStore
  /** The router's prefix, if the router is on the same origin as the pages that the guards protect. `requireLogin` needs the prefix. */
  prefix?: string
  /**
   * The function that you pass to the router as `accessTokenClaims`. With `tokenDelivery: 'session'`, `requireClaim` and `requireRole` need
   * this function, because no token contains the claims.
   */
  accessTokenClaims?: AccessTokenClaimsHook
  /** Fetches the keys of `jwksUri` or of the issuer. Default: a new client (10 s, circuit breaker off). */
  httpClient?: HttpClient
  /**
   * How long the guards use the old key set while they cannot fetch a new key set, in seconds since the last successful fetch. Default
   * 86400. 0: the guards never use an old key set.
   */
  staleIfErrorSeconds?: number
  /** Error texts in other languages or with other words. Pass the texts that you pass to the router. */
  languages?: Languages
  /** The clock, for tests. Default: the system's clock. */
  now?: () => Date
  /** Default: the console. */
  logger?: Logger
}

/**
 * Creates the guards without the router, for an API that only verifies tokens. The guards fetch nothing before the first token arrives.
 * @throws ConfigurationError with the missing piece and the fix
 */
export function createGuards<Host extends HostTypes = HostTypes>(options: GuardsOptions): Guards<Host> {
  checkOptions(options)
  const { settings, source } = resolveGuardSettings(options.settings)
  const { realm } = settings
  const logger = safely(options.logger ?? consoleLogger)
  const now = options.now ?? (() => new Date())
  const keys = 'jwtSecret' in source ? deriveKeys(source.jwtSecret, realm) : null
  const sessionTokenKeys = keys?.['session-token'] ?? null
  const accessKeys = accessKeysOf(source, settings)
  const ctx: GuardContext = {
    settings,
    tokenKeys: accessKeys ? ownKeys(accessKeys) : tokenKeysOf(source as PublishedSource, options),
    sessionTokenKeys,
    isOwnCookie: ownCookies({ settings, accessKeys, sessionTokenKeys, now }),
    keys,
    store: options.store ?? null,
    accessTokenClaims: options.accessTokenClaims ?? null,
    now,
    texts: checkedLanguages(options.languages, settings.defaultLocale),
    logger,
    notices: createSetupWarnings(logger),
    ...(options.prefix !== undefined && { prefix: options.prefix }),
  }
  return withSessionGuards(ctx, guardsFor(ctx)) as Guards<Host> // the host declares the types of its data
}

/** Returns the keys of this process. Null: another process publishes the keys, or there are none. */
function accessKeysOf(source: KeySource, { realm }: GuardSettings): readonly AccessKey[] | null {
  if ('jwtSecret' in source) return [secretAccessKey(deriveKeyList(source.jwtSecret, 'access', realm))]
  return 'jwtKeys' in source ? readJwtKeys(source.jwtKeys) : null
}

type PublishedSource = Exclude<KeySource, { jwtSecret: unknown } | { jwtKeys: unknown }>

function tokenKeysOf(source: PublishedSource, { httpClient, now, staleIfErrorSeconds }: GuardsOptions): TokenKeys {
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
    throw new ConfigurationError(
      'createGuards: the sessions of the store need the methods find() and touch() (docs/store.md#an-adapter-of-your-own).',
    )
  if (httpClient !== undefined && typeof httpClient !== 'function')
    throw new ConfigurationError('createGuards: httpClient must be a function, such as createHttpClient() returns.')
  requireStaleSeconds('createGuards', options.staleIfErrorSeconds)
  if (now !== undefined && typeof now !== 'function')
    throw new ConfigurationError('createGuards: now must be a function that returns a Date.')
  if (logger !== undefined && !hasMethods('info', 'warn', 'error')(logger)) {
    throw new ConfigurationError('createGuards: logger must be an object with the methods info, warn and error.')
  }
}

/** Rejects `accessTokenClaims` together with access tokens, because access tokens already contain their claims. */
function checkClaimsHook({ accessTokenClaims, settings }: GuardsOptions): void {
  if (accessTokenClaims === undefined) return
  if (typeof accessTokenClaims !== 'function') throw new ConfigurationError('createGuards: accessTokenClaims must be a function.')
  if (settings?.tokenDelivery !== 'session')
    throw new ConfigurationError(
      "createGuards: accessTokenClaims is for tokenDelivery 'session'; an access token contains its claims already.",
    )
}
