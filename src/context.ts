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

/** Everything an operation may use, built once at boot; the first parameter of each. */
export interface AuthContext {
  readonly settings: Settings
  /** The full public path of the mount, for example `/auth`. */
  readonly prefix: string
  readonly keys: Keys
  /** Of access tokens: `jwtKeys`, or the one derived from the secret. The first signs, all verify. */
  readonly accessKeys: readonly AccessKey[]
  /** Behind the check of its tables, where there is one. */
  readonly store: AuthStore
  /** Null: nobody looks at the tables. */
  readonly readiness: Readiness | null
  /** Registration key -> client. */
  readonly providers: ReadonlyMap<string, Provider>
  readonly hasher: PasswordHasher
  /** A hash of current parameters that nobody's password has: verified for addresses nobody has. */
  readonly dummyHash: () => Promise<string>
  readonly passwordPolicy: PasswordPolicy
  /** `settings.mfaSecretKey`: the first encrypts, all decrypt. */
  readonly mfaSecretKeys: readonly Buffer[]
  /** Null: there are no passkeys. */
  readonly webauthn: WebAuthn | null
  readonly counters: CounterStore
  /** States of social login that a callback used. */
  readonly stateMarkers: Markers
  /** id_tokens in hand that were used. */
  readonly idTokenMarkers: Markers
  readonly budgets: Budgets
  /** Null: no mailer; then links are shown in bodies. */
  readonly postman: Postman | null
  /** The host's own, where it has any. */
  readonly templates: Templates
  /** Of the pages. */
  readonly texts: PhraseBook
  /** What the pages look like. */
  readonly theme: Theme
  /** Activation and reset links stand in response bodies: never in production unless the host insists. */
  readonly showsLinks: boolean
  readonly refusesEmailLink: ((user: UserRecord) => boolean | Promise<boolean>) | null
  /** Null: access tokens carry our own claims alone. */
  readonly accessTokenClaims: AccessTokenClaimsHook | null
  readonly signup: SignupOptions
  readonly guardRequest: GuardRequest | null
  readonly onTakeOver: TakeOverHook | null
  readonly onProviderTokens: ProviderTokensHook | null
  /** What goes on after an answer. */
  readonly background: Background
  /** The grid that answers about an account are sent on, in milliseconds; 0: they are sent at once. */
  readonly gridMs: number
  readonly events: EventEmitter
  readonly logger: Logger
  /** What the log says, once each, of a set-up that looks wrong. */
  readonly notices: SetupNotices
  /** The only clock. */
  readonly now: () => Date
}

/** The rate limits; `false`: not limited. */
export interface Budgets {
  /** Calls of one client per route. */
  readonly routes: Budget | false
  readonly login: SubjectBudgets
  readonly signup: Budget | false
  /** Requests for links, per purpose. */
  readonly links: SubjectBudgets
  /** Mails to one address. */
  readonly mail: MailBudgets
  readonly device: DeviceBudgets
  /** Wrong codes of one account, over every route that takes one. */
  readonly mfa: Budget | false
  /** Wrong passwords of a signed-in person: of one session, and of a caller without one. */
  readonly password: Budget
  /** The same over all sessions of an account. */
  readonly passwordOfAccount: Budget
  /** Changes of one account whose notice can undo them. */
  readonly changes: Budget
}

/** Null: passkeys are off, and nothing asks for their table. */
export function passkeysOf({
  settings,
  store,
}: {
  settings: Pick<Settings, 'passkeysEnabled'>
  store: Pick<AuthStore, 'passkeys'>
}): PasskeyStore | null {
  return (settings.passkeysEnabled && store.passkeys) || null
}

/** An adapter of the host's is put behind our own comparison of what it answers; `createKnexStore` compares by itself. */
export function trustedStore(store: AuthStore, logger: Logger): AuthStore {
  if (isKnexStore(store)) return store
  return recheckedStore(store, (verb) => {
    logger.error({ verb }, 'doorward: the store answered with a row that was not asked for; compare strings byte by byte, ids as strings')
  })
}

/**
 * One unit of work, which has a deadline: a hook of the host's that hangs holds no connection for good. The callback's `ctx` shadows
 * the outer one: nothing inside can reach around the transaction.
 */
export function unitOfWork<T>(ctx: AuthContext, work: (ctx: AuthContext) => Promise<T>): Promise<T> {
  return ctx.store.transaction((store) => work({ ...ctx, store }), { deadlineMs: ctx.settings.unitTimeoutSeconds * 1000 })
}
