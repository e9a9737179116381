import type { Environment } from './config/environment'
import { nearestName } from './config/nearest-name'
import type { SettingsInput } from './config/settings'
import { ConfigurationError } from './errors'
import type { Logger } from './logger'
import type { Mailer } from './mailer'
import type { PasswordHasher, PasswordPolicy } from './passwords/password-hasher'
import type { ProviderClient } from './providers/provider-client'
import type { AuthStore } from './store/auth-store'
import type { Budget, CounterStore } from './throttle/counter-store'

/** Collaborators come as objects, from code; what is plain data is in `settings`. */
export interface AuthRouterOptions {
  /** docs/configuration.md; `settingsFromEnv()` reads it from the environment. */
  settings: SettingsInput
  /** Where rows live: `createKnexStore({ knex })`, or your own adapter. */
  store: AuthStore
  /** The full public path of the mount; part of redirect URIs and cookie paths. Default `/auth`. */
  prefix?: string
  /** Registration key -> client. The key is what routes use and what `identities.provider` stores. */
  providers?: Record<string, ProviderClient>
  /** Whose rules hold; without it NODE_ENV says, and unset counts as production. */
  environment?: Environment
  mailer?: Mailer
  /** Default `argon2idHasher()`. */
  passwordHasher?: PasswordHasher
  passwordPolicy?: PasswordPolicy
  throttle?: {
    /** Shared by all processes; default: in this process. */
    counters?: CounterStore
    /** Calls of one client per route. Default 60 per 60 s. */
    routes?: Budget | false
  }
  /** Default: the console. */
  logger?: Logger
  /** The only clock. */
  now?: () => Date
  /** Legacy override, no longer called: accepted so that boot can say so. */
  loginWithProvider?: unknown
  /** Legacy override, no longer called: accepted so that boot can say so. */
  issueMfaToken?: unknown
}

const known = {
  settings: true,
  store: true,
  prefix: true,
  providers: true,
  environment: true,
  mailer: true,
  passwordHasher: true,
  passwordPolicy: true,
  throttle: true,
  logger: true,
  now: true,
  loginWithProvider: true,
  issueMfaToken: true,
} satisfies Record<keyof AuthRouterOptions, true>

/** @throws ConfigurationError for an option that does not exist: a typo must not switch a protection off in silence */
export function refuseUnknownOptions(where: string, given: object, names: readonly string[] = Object.keys(known)): void {
  for (const name of Object.keys(given)) {
    if (names.includes(name)) continue
    throw new ConfigurationError(
      `${where}: unknown option ${JSON.stringify(name.slice(0, 64))}; the nearest known one is ${nearestName(name, names)}.`,
    )
  }
}
