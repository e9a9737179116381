import type { ErrorRequestHandler, RequestHandler, Router } from 'express'
import express from 'express'
import { accountRoutes } from './account/routes'
import { runBootChecks } from './boot-checks'
import { isProduction } from './config/environment'
import { resolveSettings, type Settings } from './config/settings'
import type { AuthContext } from './context'
import { type AuthEvents, createEvents } from './events'
import { type Guards, guardsFor } from './guards/guards'
import { sendError } from './http/error-envelope'
import { localeOf } from './http/locale'
import { mountRoutes, type Route } from './http/routes'
import { deriveKeys } from './keys'
import { consoleLogger, type Logger } from './logger'
import { type AuthRouterOptions, checkOptions } from './options'
import { argon2idHasher } from './passwords/hasher'
import type { PasswordPolicy } from './passwords/password-hasher'
import { generatePassword } from './passwords/policy'
import { type AuthService, createService } from './service'
import { sessionRoutes } from './session/routes'
import { socialRoutes } from './social/routes'
import { resolveBudget } from './throttle/budget'
import type { CounterStore } from './throttle/counter-store'
import { withLocalFallback } from './throttle/local-fallback'
import { memoryCounters } from './throttle/memory-counters'

/** `app.use('/auth', auth)` */
export interface AuthRouter extends Router {
  readonly guards: Guards
  /** The same operations without HTTP. */
  readonly service: AuthService
  readonly events: AuthEvents
}

/**
 * Checks everything once, and returns the router to mount at `prefix`.
 * @throws ConfigurationError naming the missing piece and the fix
 */
export function createAuthRouter(options: AuthRouterOptions): AuthRouter {
  const ctx = createContext(options)
  const guards = guardsFor(ctx)
  const router = express.Router({ caseSensitive: true, strict: true })
  router.use(checkMount(ctx))
  mountRoutes(router, routesOf(ctx, guards))
  router.use(answerErrors(ctx))
  return Object.assign(router, { guards, service: createService(ctx), events: ctx.events })
}

function routesOf(ctx: AuthContext, guards: Guards): Route[] {
  const social = ctx.settings.oauthEnabled ? socialRoutes(ctx, guards) : []
  return [...social, ...sessionRoutes(ctx), ...accountRoutes(ctx, guards)]
}

function createContext(options: AuthRouterOptions): AuthContext {
  checkOptions(options)
  const production = isProduction(options.environment)
  const settings = resolveSettings(options.settings, { production })
  const logger = options.logger ?? consoleLogger
  const providers = new Map(Object.entries(options.providers ?? {}))
  const prefix = options.prefix ?? '/auth'
  runBootChecks({ options, settings, production, prefix, providers, store: options.store, logger })
  return Object.freeze({
    settings,
    prefix,
    keys: deriveKeys(settings.jwtSecret),
    store: options.store,
    providers,
    hasher: options.passwordHasher ?? argon2idHasher(),
    passwordPolicy: policyOf(options, settings),
    ...countersOf(options, logger),
    events: createEvents(logger),
    logger,
    now: options.now ?? (() => new Date()),
  })
}

function policyOf({ passwordPolicy }: AuthRouterOptions, settings: Settings): PasswordPolicy {
  const { passwordMinLength: minLength, passwordMaxBytes: maxBytes, passwordRequireComplexity: requireComplexity } = settings
  const policy = { minLength, maxBytes, requireComplexity, ...passwordPolicy }
  generatePassword(policy) // a policy without room for one is found now, and not by the first person who signs in
  return policy
}

/** A shared store has a local one behind it, so that an outage never means "unlimited", nor a state that works twice here. */
function countersOf(
  { throttle = {}, now }: AuthRouterOptions,
  logger: Logger,
): Pick<AuthContext, 'counters' | 'stateMarkers' | 'routeBudget'> {
  const clock = now ? { now: () => now().getTime() } : {}
  const { counters } = throttle
  const guarded = (shared: CounterStore) => withLocalFallback(shared, { ...clock, logger })
  return {
    counters: counters ? guarded(counters) : memoryCounters(clock),
    // A view of its own has a local store of its own: no flood of other keys can push a spent state out of it.
    stateMarkers: counters ? guarded(viewOf(counters)) : memoryCounters(clock),
    routeBudget: resolveBudget('throttle.routes', throttle.routes, { attempts: 60, windowSeconds: 60 }),
  }
}

function viewOf(counters: CounterStore): CounterStore {
  return {
    increment: (key, windowSeconds, limit) => counters.increment(key, windowSeconds, limit),
    decrement: (key) => counters.decrement(key),
    reset: (key) => counters.reset(key),
  }
}

/** Looked at once, when the first request shows how we are mounted. */
function checkMount({ prefix, logger }: AuthContext): RequestHandler {
  let isChecked = false
  return (req, _res, next) => {
    if (!isChecked) {
      isChecked = true
      const isEnd = prefix.endsWith(req.baseUrl) || req.baseUrl.endsWith(prefix)
      if (!isEnd || req.baseUrl === '')
        logger.warn(
          { prefix },
          'doorward: the router is mounted elsewhere than option prefix says; redirect URIs and cookie paths follow the option.',
        )
      if (req.app.get('trust proxy') === true)
        logger.warn(
          {},
          "doorward: the app trusts every proxy ('trust proxy' is true), so clients choose their own address and escape every budget; name your proxies instead.",
        )
    }
    next()
  }
}

/** The envelope for whatever went wrong under the prefix; nothing of ours reaches the host's error handler. */
function answerErrors(ctx: AuthContext): ErrorRequestHandler {
  return (error, req, res, next) => {
    // Half an answer cannot be turned into another one: Express ends the connection.
    if (res.headersSent) return next(error)
    sendError(req, res, error, { logger: ctx.logger, locale: localeOf(req, ctx.settings.defaultLocale) })
  }
}
