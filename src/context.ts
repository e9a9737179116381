import type { Settings } from './config/settings'
import type { EventEmitter } from './events'
import type { Keys } from './keys'
import type { Logger } from './logger'
import type { PasswordHasher, PasswordPolicy } from './passwords/password-hasher'
import type { ProviderClient } from './providers/provider-client'
import type { AuthStore } from './store/auth-store'
import { recheckedStore } from './store/rechecked-store'
import type { Budget, CounterStore } from './throttle/counter-store'

/** Everything an operation may use, built once at boot; the first parameter of each. */
export interface AuthContext {
  readonly settings: Settings
  /** The full public path of the mount, for example `/auth`. */
  readonly prefix: string
  readonly keys: Keys
  readonly store: AuthStore
  /** Registration key -> client. */
  readonly providers: ReadonlyMap<string, ProviderClient>
  readonly hasher: PasswordHasher
  readonly passwordPolicy: PasswordPolicy
  readonly counters: CounterStore
  /** Spent states; a map of their own, so that no flood of other keys can push one out. */
  readonly stateMarkers: CounterStore
  readonly routeBudget: Budget | false
  readonly events: EventEmitter
  readonly logger: Logger
  /** The only clock. */
  readonly now: () => Date
}

/** The host's store behind our own comparison of what it answers. */
export function trustedStore(store: AuthStore, logger: Logger): AuthStore {
  return recheckedStore(store, (verb) => {
    logger.error({ verb }, 'doorward: the store answered with a row that was not asked for; compare strings byte by byte, ids as strings')
  })
}

/** One unit of work. The callback's `ctx` shadows the outer one: nothing inside can reach around the transaction. */
export function unitOfWork<T>(ctx: AuthContext, work: (ctx: AuthContext) => Promise<T>): Promise<T> {
  return ctx.store.transaction((store) => work({ ...ctx, store }))
}
