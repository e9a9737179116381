import { createBackground } from './background'
import { type Boot, runBootChecks } from './boot-checks'
import { warnAtBoot } from './boot-warnings'
import { isProduction } from './config/environment'
import { resolveSettings, type Settings } from './config/settings'
import { type AuthContext, type Budgets, trustedStore } from './context'
import { ConfigurationError } from './errors'
import { createEvents } from './events'
import { deriveKeys, secretAccessKey } from './keys'
import { consoleLogger, type Logger, safely } from './logger'
import { createPostman } from './mail/postman'
import { readSecretKeys } from './mfa/secret-box'
import { type AuthRouterOptions, checkOptions, type Templates } from './options'
import { createDummyHash } from './passwords/dummy-hash'
import { argon2idHasher } from './passwords/hasher'
import type { PasswordHasher, PasswordPolicy } from './passwords/password-hasher'
import { readSigningKeys } from './session/access-keys'
import { resolveBudget, resolveBudgets } from './throttle/budget'
import { countedHereToo } from './throttle/counted-here-too'
import { withLocalFallback } from './throttle/local-fallback'
import { memoryCounters } from './throttle/memory-counters'

/**
 * Everything the operations stand on, checked and complete.
 * @throws ConfigurationError naming the missing piece and the fix
 */
export function createContext(options: AuthRouterOptions): AuthContext {
  checkOptions(options)
  const production = isProduction(options.environment)
  const settings = resolveSettings(options.settings, { production })
  const logger = safely(options.logger ?? consoleLogger)
  const providers = new Map(Object.entries(options.providers ?? {}))
  const prefix = options.prefix ?? '/auth'
  const events = createEvents(logger)
  const boot: Boot = { options, settings, production, prefix, providers, store: options.store, logger }
  runBootChecks(boot)
  warnAtBoot(boot)
  const keys = deriveKeys(settings.jwtSecret)
  const hasher = options.passwordHasher ?? argon2idHasher()
  return Object.freeze({
    settings,
    prefix,
    keys,
    accessKeys: settings.jwtKeys ? readSigningKeys(settings.jwtKeys) : [secretAccessKey(keys.access)],
    store: trustedStore(options.store, logger),
    providers,
    hasher,
    dummyHash: createDummyHash(hasher),
    passwordPolicy: policyOf(options, settings, hasher),
    mfaSecretKeys: readSecretKeys(settings.mfaSecretKey),
    ...countersOf(options, logger),
    budgets: budgetsOf(options),
    postman: options.mailer ? createPostman({ mailer: options.mailer, events, logger }) : null,
    templates: templatesOf(options),
    showsLinks: options.mailer === undefined || settings.returnTokenInResponse,
    refusesEmailLink: options.refusesEmailLink ?? null,
    signup: options.signup ?? {},
    background: createBackground(logger),
    events,
    logger,
    now: options.now ?? (() => new Date()),
  })
}

/** Option by option, and `check` by a call: a policy may be an object of a class. The hasher's own limit wins over a larger one. */
function policyOf({ passwordPolicy = {} }: AuthRouterOptions, settings: Settings, hasher: PasswordHasher): PasswordPolicy {
  const minLength = passwordPolicy.minLength ?? settings.passwordMinLength
  const maxBytes = Math.min(passwordPolicy.maxBytes ?? settings.passwordMaxBytes, hasher.maxPasswordBytes ?? Number.POSITIVE_INFINITY)
  // The limits of the two allow it, a hasher's own may not; NaN would be no limit.
  if (!(maxBytes >= minLength))
    throw new ConfigurationError(
      'passwordHasher.maxPasswordBytes must be a number not below passwordMinLength: otherwise no password could be set.',
    )
  return {
    minLength,
    maxBytes,
    requireComplexity: passwordPolicy.requireComplexity ?? settings.passwordRequireComplexity,
    ...(passwordPolicy.check && { check: async (password, about) => passwordPolicy.check?.(password, about) ?? null }),
  }
}

// A spent state may not be forgotten before it expires, so strangers who spend many fill this up: room for very many.
const spentStates = 500_000

/** A shared store has a local one behind it, so that an outage never means "unlimited", nor a state that works twice here. */
function countersOf({ throttle = {}, now }: AuthRouterOptions, logger: Logger): Pick<AuthContext, 'counters' | 'stateMarkers'> {
  const clock = now ? { now: () => now().getTime() } : {}
  const shared = throttle.counters ? withLocalFallback(throttle.counters, { ...clock, logger }) : null
  // A map of their own: no flood of other keys can push a spent state out of it.
  const states = memoryCounters({ ...clock, maxKeys: spentStates })
  return {
    counters: shared ?? memoryCounters(clock),
    stateMarkers: shared ? countedHereToo(shared, states) : states,
  }
}

/** A copy: what a host does to its object later changes nothing. */
function templatesOf({ templates = {} }: AuthRouterOptions): Templates {
  return Object.freeze({
    ...(templates.mails && { mails: Object.freeze({ ...templates.mails }) }),
    ...(templates.pages && { pages: Object.freeze({ ...templates.pages }) }),
  })
}

function budgetsOf({ throttle = {} }: AuthRouterOptions): Budgets {
  const failures = { attempts: 5, windowSeconds: 900 }
  return Object.freeze({
    routes: resolveBudget('throttle.routes', throttle.routes, { attempts: 60, windowSeconds: 60 }),
    login: resolveBudgets('throttle.login', throttle.login, { email: failures, client: failures }),
    signup: resolveBudget('throttle.signup', throttle.signup, { attempts: 20, windowSeconds: 3_600 }),
    links: resolveBudgets('throttle.links', throttle.links, { email: failures, client: { attempts: 20, windowSeconds: 900 } }),
    mail: resolveBudget('throttle.mail', throttle.mail, { attempts: 5, windowSeconds: 3_600 }),
    mfa: resolveBudget('throttle.mfa', throttle.mfa, failures),
    password: failures,
  })
}
