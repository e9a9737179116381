import type { Background } from './background'
import type { AccessTokenClaimsHook } from './claims/ask-for-claims'
import type { Settings } from './config/every-setting'
import type { EventEmitter } from './events'
import type { GuardRequest } from './http/guard-request'
import type { AccessKey, Keys } from './keys'
import type { Logger } from './logger'
import type { Postman } from './mail/postman'
import type { ProviderTokensHook, SignupOptions, TakeOverHook, Templates } from './options'
import type { PasswordHasher, PasswordPolicy } from './passwords/password-hasher'
import type { Provider } from './providers/passport-provider'
import type { Readiness } from './readiness/readiness'
import type { SetupNotices } from './setup-notices/notices'
import type { AuthStore, PasskeyStore, UserRecord } from './store/auth-store'
import { isKnexStore } from './store/knex/knex-store'
import { recheckedStore } from './store/rechecked-store'
import type { PhraseBook } from './texts/phrase-book'
import type { Theme } from './theme/theme'
import type { DeviceBudgets, MailBudgets, SubjectBudgets } from './throttle/budget'
import type { Budget, CounterStore } from './throttle/counter-store'
import type { Markers } from './throttle/markers'
import type { WebAuthn } from './webauthn/ceremonies'

/** Everything that an operation may use, built once at boot. It is the first parameter of every operation. */
export interface AuthContext {
  readonly settings: Settings
  /** The full public path of the mount, for example `/auth`. */
  readonly prefix: string
  readonly keys: Keys
  /** Keys of access tokens: `jwtKeys`, or the key derived from `jwtSecret`. The first signs; all of them verify. */
  readonly accessKeys: readonly AccessKey[]
  /** The store. With `readiness`, each call waits for the check of the tables. */
  readonly store: AuthStore
  /** Null: the tables are not checked. */
  readonly readiness: Readiness | null
  /** Registration key -> client. */
  readonly providers: ReadonlyMap<string, Provider>
  readonly hasher: PasswordHasher
  /** Returns a hash that no password matches. Logins verify it when the address has no account, so that they take as long. */
  readonly dummyHash: () => Promise<string>
  readonly passwordPolicy: PasswordPolicy
  /** The keys of `settings.mfaSecretKey`. The first encrypts; all of them decrypt. */
  readonly mfaSecretKeys: readonly Buffer[]
  /** Null: passkeys are off. */
  readonly webauthn: WebAuthn | null
  readonly counters: CounterStore
  /** Marks the states of social login that a callback has used. */
  readonly stateMarkers: Markers
  /** Marks the id_tokens that a client has posted and that were used. */
  readonly idTokenMarkers: Markers
  readonly budgets: Budgets
  /** Null: there is no mailer, so response bodies contain the links. */
  readonly postman: Postman | null
  /** The host's templates. */
  readonly templates: Templates
  /** The texts in every language. */
  readonly texts: PhraseBook
  /** The look of the pages. */
  readonly theme: Theme
  /** True when responses contain activation and reset links. In production only with `linksInProduction`. */
  readonly showsLinks: boolean
  readonly refusesEmailLink: ((user: UserRecord) => boolean | Promise<boolean>) | null
  /** Null: access tokens contain only our own claims. */
  readonly accessTokenClaims: AccessTokenClaimsHook | null
  readonly signup: SignupOptions
  readonly guardRequest: GuardRequest | null
  readonly onTakeOver: TakeOverHook | null
  readonly onProviderTokens: ProviderTokensHook | null
  /** Work that continues after the response was sent. */
  readonly background: Background
  /** Responses about an account are sent at multiples of this time, in milliseconds. 0: they are sent at once. */
  readonly gridMs: number
  readonly events: EventEmitter
  readonly logger: Logger
  /** Logs each sign of a wrong set-up once. */
  readonly notices: SetupNotices
  /** The only clock. */
  readonly now: () => Date
}

/** The rate limits. `false`: not limited. */
export interface Budgets {
  /** Requests of one client to one route. */
  readonly routes: Budget | false
  readonly login: SubjectBudgets
  readonly signup: Budget | false
  /** Requests for links, per purpose of the link. */
  readonly links: SubjectBudgets
  /** Mails to one address. */
  readonly mail: MailBudgets
  readonly device: DeviceBudgets
  /** Wrong codes of one account, over all routes that take a code. */
  readonly mfa: Budget | false
  /** Wrong passwords of a signed-in person, per session. Calls without a session share one limit per account. */
  readonly password: Budget
  /** Wrong passwords of a signed-in person, over all sessions of the account. */
  readonly passwordOfAccount: Budget
  /** Changes of one account that the link of a notice can undo. */
  readonly changes: Budget
}

/** Returns the passkeys of the store. Null: passkeys are off, so their table is never used. */
export function passkeysOf({
  settings,
  store,
}: {
  settings: Pick<Settings, 'passkeysEnabled'>
  store: Pick<AuthStore, 'passkeys'>
}): PasskeyStore | null {
  return (settings.passkeysEnabled && store.passkeys) || null
}

/**
 * Returns the passkeys that are stored, also while passkeys are off: an attacker's passkey could log in once they are on again. Null: there
 * is no table.
 */
export async function storedPasskeys(ctx: AuthContext): Promise<PasskeyStore | null> {
  const { passkeys } = ctx.store
  if (!passkeys) return null
  return ctx.settings.passkeysEnabled || (await passkeys.isPresent?.()) !== false ? passkeys : null
}

/** Wraps a host's adapter in our own check of the rows it returns. The store of `createKnexStore` checks them itself. */
export function trustedStore(store: AuthStore, logger: Logger): AuthStore {
  if (isKnexStore(store)) return store
  return recheckedStore(store, (verb) => {
    logger.error({ verb }, 'doorward: the store answered with a row that was not asked for; compare strings byte by byte, ids as strings')
  })
}

/**
 * Runs `work` in one transaction with a deadline, so that a host's hook that hangs does not hold a connection forever. Use only the `ctx`
 * that `work` gets: its store is the transaction.
 */
export function unitOfWork<T>(ctx: AuthContext, work: (ctx: AuthContext) => Promise<T>): Promise<T> {
  return ctx.store.transaction((store) => work({ ...ctx, store }), { deadlineMs: ctx.settings.unitTimeoutSeconds * 1000 })
}
