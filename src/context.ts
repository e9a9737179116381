import type { Background } from './core/background'
import type { Settings } from './core/config/every-setting'
import type { EventEmitter } from './core/events'
import type { AccessKey, Keys } from './core/keys'
import type { Logger } from './core/logger'
import type { SetupWarnings } from './core/setup-warnings'
import type { Templates } from './core/templates'
import type { PhraseBook } from './core/texts/phrase-book'
import type { Theme } from './core/theme/theme'
import type { Captcha, CaptchaWhen } from './http/captcha'
import type { GuardRequest } from './http/guard-request'
import type { LoginTasks, TaskAnswers } from './login-tasks/login-task'
import type { MailQueue } from './mail/mail-queue'
import type { AuditLog } from './observers/audit-log'
import type { DeletionHook, ExportHook, InvitationAcceptedHook, ProviderTokensHook, SignupOptions, TakeOverHook } from './options'
import { type EmittedEvent, writeOutbox } from './outbox/outbox-events'
import type { WebAuthn } from './passkeys/webauthn/ceremonies'
import type { PasswordHasher, PasswordPolicy } from './passwords/password-types'
import type { Provider } from './providers/passport-provider'
import type { MailPlace } from './rate-limits/mail-place'
import type { Markers } from './rate-limits/markers'
import type { CounterStore, RateLimits } from './rate-limits/rate-limit'
import type { AccessTokenClaimsHook } from './sessions/ask-for-claims'
import type { SessionEnds } from './sessions/session-ends'
import type { AuthStore, PasskeyStore, TableFinding, UserRecord } from './store/auth-store'
import { isKnexStore } from './store/knex/knex-store'
import { recheckedStore } from './store/rechecked-store'

/** The data and functions that operations use. The context is built once at boot. The context is the first parameter of every operation. */
export interface AuthContext {
  readonly settings: Settings
  /** The full public path of the mount, for example `/auth`. */
  readonly prefix: string
  readonly keys: Keys
  /** The keys of access tokens: `jwtKeys`, or the key derived from `jwtSecret`. The first key signs, and all keys verify. */
  readonly accessKeys: readonly AccessKey[]
  /** The store. If `readiness` is set, each call first waits for the check of the tables, at most 5 seconds. */
  readonly store: AuthStore
  /** Shows whether the store can work with its tables. Null: the tables are not checked. */
  readonly readiness: Readiness | null
  /** The provider clients by registration key. */
  readonly providers: ReadonlyMap<string, Provider>
  readonly hasher: PasswordHasher
  /**
   * Returns a hash that no password matches. If an address has no account, the login compares the password with this hash. So the login
   * takes as long as with an account.
   */
  readonly dummyHash: () => Promise<string>
  readonly passwordPolicy: PasswordPolicy
  /** The keys of `settings.mfaSecretKey`. The first key encrypts, and all keys decrypt. */
  readonly mfaSecretKeys: readonly Buffer[]
  /** Returns true if two stored TOTP secrets of a user are the same secret, whichever key encrypted them. */
  readonly isSameTotpSecret: (userId: string, one: string | null, other: string | null) => boolean
  /** Makes the options of passkeys and verifies responses. Null: passkeys are off. */
  readonly webauthn: WebAuthn | null
  readonly counters: CounterStore
  /** Marks the social login states that a callback has used. */
  readonly stateMarkers: Markers
  /** Marks the id_tokens that clients have posted and used. */
  readonly idTokenMarkers: Markers
  readonly rateLimits: RateLimits
  /** Sends the mails. Null: there is no mailer, so response bodies contain the links. */
  readonly mailQueue: MailQueue | null
  /** The host's templates. */
  readonly templates: Templates
  /** The texts in every language. */
  readonly texts: PhraseBook
  /** The look of the pages. */
  readonly theme: Theme
  /** True if responses contain activation and reset links. In production, responses contain them only with `linksInProduction`. */
  readonly showsLinks: boolean
  readonly refusesEmailLink: ((user: UserRecord) => boolean | Promise<boolean>) | null
  /** The host's hook for additional claims. Null: access tokens contain only our own claims. */
  readonly accessTokenClaims: AccessTokenClaimsHook | null
  /** What a login can owe before its session begins. Null: nothing. */
  readonly loginTasks: LoginTasks | null
  /** What the host said about the account that logs in. Absent: the host was not asked. */
  readonly taskAnswers?: TaskAnswers
  readonly signup: SignupOptions
  readonly guardRequest: GuardRequest | null
  /** Of a request without a session, whose mail `throttle.signupMails` counts. */
  readonly mailPlace?: MailPlace
  /** Null: no form asks for a captcha. */
  readonly captcha: Captcha | null
  /** Null: every action but a login is asked. */
  readonly captchaWhen: CaptchaWhen | null
  readonly onTakeOver: TakeOverHook | null
  readonly onInvitationAccepted: InvitationAcceptedHook | null
  readonly onProviderTokens: ProviderTokensHook | null
  readonly onDelete: DeletionHook | null
  readonly onExport: ExportHook | null
  /** The host's log of the events. Null: none was passed as an option. */
  readonly auditLog: AuditLog | null
  /** Runs work that no response waits for. */
  readonly background: Background
  /** Responses about an account are sent at multiples of this time, in milliseconds. 0: responses are sent at once. */
  readonly gridMs: number
  readonly events: EventEmitter
  /** True: `transaction` also writes the events of the outbox as rows. False inside of it, because the outer transaction writes them. */
  readonly writesOutbox: boolean
  /** Tells the guards which sessions `store` may have ended. */
  readonly sessionEnds: SessionEnds
  readonly logger: Logger
  /** Logs each sign of a wrong setup once. */
  readonly notices: SetupWarnings
  /** Returns true if a key of ours made this value of this cookie, also if the value has expired. */
  readonly isOwnCookie: (name: string, value: string) => boolean
  /** The clock of all operations. */
  readonly now: () => Date
}

/** Shows whether the store can work with its tables. An `error` is a finding of level `error`. */
export interface Readiness {
  /** True if a check has ended and no `error` is known. A call of the store then does not wait. */
  readonly isOpen: boolean
  /**
   * Waits for the running check.
   * @throws SignInUnavailableError while there is an `error`
   */
  pass(): Promise<void>
  /**
   * Throws a SignInUnavailableError while there is an `error`, like `pass`, but does not wait. Inside a host's transaction, waiting could
   * take forever, because the check may need the connection of that transaction.
   */
  refuseIfBroken(): void
  /** Runs a new check and returns its findings. The result does not change whether `pass` accepts calls. */
  look(): Promise<readonly TableFinding[]>
  /**
   * Waits for the check. While there is an `error`, each call runs a new check.
   * @throws ConfigurationError with a list of every `error`
   */
  ready(): Promise<void>
}

/** Returns the store of passkeys. Returns null if passkeys are off, so that no code uses the table of passkeys. */
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
 * Returns the store of passkeys, even while passkeys are off. Callers use the store to remove an attacker's passkey, which could otherwise
 * log in as soon as passkeys are on again. Returns null if there is no table.
 */
export async function storedPasskeys(ctx: AuthContext): Promise<PasskeyStore | null> {
  const { passkeys } = ctx.store
  if (!passkeys) return null
  return ctx.settings.passkeysEnabled || (await passkeys.isPresent?.()) !== false ? passkeys : null
}

/**
 * Wraps a host's adapter. The wrapper checks the rows that the adapter returns. The store of `createKnexStore` checks its own rows, so this
 * store needs no wrapper.
 */
export function trustedStore(store: AuthStore, logger: Logger): AuthStore {
  if (isKnexStore(store)) return store
  return recheckedStore(store, (verb) => {
    logger.error(
      { verb },
      'doorward: the store returned a row that does not match the request. Compare strings byte by byte, and ids as strings',
    )
  })
}

/**
 * Runs `work` in one transaction with a deadline. Without a deadline, a host's hook that hangs would block a connection forever. Inside
 * `work`, use only the `ctx` that `work` gets, because only the store of this `ctx` runs in the transaction. Its events are emitted after the
 * commit, and never after a rollback. With the option `outbox`, the transaction also writes them as rows, so emit an event of the outbox only
 * here.
 */
export async function transaction<T>(ctx: AuthContext, work: (ctx: AuthContext) => Promise<T>): Promise<T> {
  let emitted: EmittedEvent[] = []
  const events: EventEmitter = { ...ctx.events, emit: (name, payload) => void emitted.push({ name, payload }) }
  const attempt = async (store: AuthStore) => {
    emitted = [] // a conflict rolled the earlier attempt back
    const result = await work({ ...ctx, store, events, writesOutbox: false })
    if (ctx.writesOutbox) await writeOutbox(store, emitted, ctx.now())
    return result
  }
  const result = await ctx.store.transaction(attempt, { deadlineMs: ctx.settings.unitTimeoutSeconds * 1000 })
  for (const { name, payload } of emitted) ctx.events.emit(name, payload as never) // the pair that was emitted
  return result
}
