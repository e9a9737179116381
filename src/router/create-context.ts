import { captchaOfRouter } from '../captcha/proof-of-work'
import { type AuthContext, trustedStore } from '../context'
import { createBackground } from '../core/background'
import { isProduction, isTest } from '../core/config/environment'
import { type Settings, withPages } from '../core/config/every-setting'
import { resolveSettings } from '../core/config/settings'
import { ConfigurationError } from '../core/errors'
import { createEvents } from '../core/events'
import { deriveKeys, secretAccessKey } from '../core/keys'
import { consoleLogger, type Logger, safely } from '../core/logger'
import { createSetupWarnings, discoveryNotices } from '../core/setup-warnings'
import type { Templates } from '../core/templates'
import { createPhraseBook } from '../core/texts/phrase-book'
import { createTheme } from '../core/theme/theme'
import { loginTasksOf } from '../login-tasks/login-task'
import { createMailQueue } from '../mail/mail-queue'
import { type AuthRouterOptions, checkOptions } from '../options'
import { createWebAuthn } from '../passkeys/webauthn/ceremonies'
import { argon2idHasher, createDummyHash } from '../passwords/password-hasher'
import type { PasswordHasher, PasswordPolicy } from '../passwords/password-types'
import { isPassportProvider } from '../providers/passport-provider'
import { withLocalFallback } from '../rate-limits/local-fallback'
import { createMarkers, type Markers } from '../rate-limits/markers'
import { memoryCounters } from '../rate-limits/memory-counters'
import { rateLimitsOf } from '../rate-limits/rate-limit'
import { isSameSecret, readSecretKeys } from '../second-factor/secret-box'
import { readSigningKeys } from '../sessions/access-keys'
import { ownCookies } from '../sessions/cookies'
import { readSessionToken } from '../sessions/find-session'
import { announcingEnds, createSessionEnds } from '../sessions/session-ends'
import { isOwnState } from '../social/state-cookie'
import { type Boot, runBootChecks } from './findings/boot-checks'
import { warnAtBoot } from './findings/boot-warnings'
import { readinessOf } from './findings/readiness/check-tables'
import { guardedStore } from './findings/readiness/readiness'

/**
 * Checks the options and builds the context of all operations.
 * @throws ConfigurationError with the missing piece and the fix
 */
export function createContext(options: AuthRouterOptions): AuthContext {
  checkOptions(options)
  const production = isProduction(options.environment)
  const defendsTiming = !isTest(options.environment) || options.timingDefence === true
  const logger = safely(options.logger ?? consoleLogger)
  const providers = new Map(Object.entries(options.providers ?? {}))
  const prefix = options.prefix ?? '/auth'
  const settings = withPages(resolveSettings(options.settings, { production }), prefix)
  const events = createEvents(logger)
  const now = options.now ?? (() => new Date())
  const boot: Boot = { options, settings, production, prefix, providers, store: options.store, logger }
  runBootChecks(boot)
  warnAtBoot(boot)
  for (const [key, client] of providers) {
    if (isPassportProvider(client)) continue
    client.useClock?.(now)
    if (settings.oauthEnabled) client.prepareInBackground?.(key, discoveryNotices(key, logger))
  }
  const keys = deriveKeys(settings.jwtSecret, settings.realm)
  const readiness = readinessOf(options, settings, logger, now)
  const sessionEnds = createSessionEnds()
  const store = trustedStore(options.store, logger)
  const hasher = options.passwordHasher ?? argon2idHasher()
  const mfaSecretKeys = readSecretKeys(settings.mfaSecretKey)
  const { puzzleMarkers, ...counting } = countersOf(options, logger)
  const accessKeys = settings.jwtKeys ? readSigningKeys(settings.jwtKeys) : [secretAccessKey(keys.access)]
  return Object.freeze({
    settings,
    prefix,
    keys,
    accessKeys,
    store: announcingEnds(readiness ? guardedStore(store, readiness) : store, sessionEnds),
    readiness,
    providers,
    hasher,
    dummyHash: createDummyHash(hasher),
    passwordPolicy: policyOf(options, settings, hasher),
    webauthn: settings.passkeysEnabled ? createWebAuthn(settings) : null,
    mfaSecretKeys,
    isSameTotpSecret: (userId: string, one: string | null, other: string | null) => isSameSecret(mfaSecretKeys, userId, one, other),
    ...counting,
    captcha: captchaOfRouter(options.captcha, { keys: keys.captcha, used: puzzleMarkers, now, prefix }),
    captchaWhen: options.captchaWhen ?? null,
    rateLimits: rateLimitsOf(options.throttle),
    mailQueue: options.mailer ? createMailQueue({ mailer: options.mailer, events, logger, concurrency: settings.mailConcurrency }) : null,
    templates: templatesOf(options),
    texts: createPhraseBook(options.languages),
    theme: createTheme(prefix, nameOf(settings), options.theme),
    showsLinks: options.mailer === undefined || settings.returnTokenInResponse,
    refusesEmailLink: options.refusesEmailLink ?? null,
    accessTokenClaims: options.accessTokenClaims ?? null,
    loginTasks: loginTasksOf(options.loginTasks, settings.unknownDevice === 'code'),
    signup: options.signup ?? {},
    guardRequest: options.guardRequest ?? null,
    onTakeOver: options.onTakeOver ?? null,
    onInvitationAccepted: options.onInvitationAccepted ?? null,
    onProviderTokens: options.onProviderTokens ?? null,
    onDelete: options.onDelete ?? null,
    onExport: options.onExport ?? null,
    auditLog: options.auditLog ?? null,
    background: createBackground(logger, { isDelayed: defendsTiming }),
    gridMs: defendsTiming ? settings.timingGridMilliseconds : 0,
    events,
    writesOutbox: options.outbox === true,
    sessionEnds,
    logger,
    notices: createSetupWarnings(logger),
    isOwnCookie: ownCookies({
      settings,
      accessKeys,
      sessionTokenKeys: keys['session-token'],
      now,
      more: {
        [settings.refreshCookieName]: (value) => readSessionToken(keys['session-token'], 'tokens', value) !== null,
        [settings.oauthStateCookieName]: (value) => isOwnState({ settings, keys }, value),
      },
    }),
    now,
  })
}

/**
 * Returns the password policy. The host's policy can be an instance of a class, and a spread would lose the methods of the class. Therefore
 * the function reads each option by name and calls `check` as a method. If `maxPasswordBytes` of the hasher is lower than the policy's
 * `maxBytes`, the limit of the hasher applies.
 */
function policyOf({ passwordPolicy = {} }: AuthRouterOptions, settings: Settings, hasher: PasswordHasher): PasswordPolicy {
  const minLength = passwordPolicy.minLength ?? settings.passwordMinLength
  const maxBytes = Math.min(passwordPolicy.maxBytes ?? settings.passwordMaxBytes, hasher.maxPasswordBytes ?? Number.POSITIVE_INFINITY)
  // The settings alone cannot cause this error, but a low limit of the hasher can. The negation also catches NaN.
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

/**
 * Creates the counters and markers. If a shared store fails, this process counts by itself. So during an outage the rate limits still
 * apply. In this process, a state of social login still works only once.
 */
function countersOf(
  { throttle = {}, now }: AuthRouterOptions,
  logger: Logger,
): Pick<AuthContext, 'counters' | 'stateMarkers' | 'idTokenMarkers'> & { puzzleMarkers: Markers } {
  const clock = now ? { now: () => now().getTime() } : {}
  const shared = throttle.counters ? withLocalFallback(throttle.counters, { ...clock, logger }) : null
  const markers = { counters: shared, now: clock.now ?? Date.now }
  return {
    counters: shared ?? memoryCounters(clock),
    stateMarkers: createMarkers('oauth-state', markers),
    idTokenMarkers: createMarkers('id-token', markers),
    puzzleMarkers: createMarkers('captcha', markers),
  }
}

/** Returns the product name for the pages, if the option `theme` has no name. */
function nameOf({ mfaIssuer, publicUrl }: Settings): string {
  return mfaIssuer ?? (publicUrl === '' ? '' : new URL(publicUrl).host)
}

/** Copies the templates, so that later changes of the host's objects have no effect. */
function templatesOf({ templates = {} }: AuthRouterOptions): Templates {
  return Object.freeze({
    ...(templates.mails && { mails: Object.freeze({ ...templates.mails }) }),
    ...(templates.layout && { layout: templates.layout }),
    ...(templates.pages && { pages: Object.freeze({ ...templates.pages }) }),
  })
}
