import type { Readiness } from '../../../context'
import { ConfigurationError, ServiceUnavailableError } from '../../../core/errors'
import { describeError, type Logger } from '../../../core/logger'
import { localized } from '../../../core/texts/phrase-book'
import { seeTroubleshooting } from '../../../core/troubleshooting'
import { withTimeout } from '../../../core/with-timeout'
import type { AuthStore, TableFinding } from '../../../store/auth-store'

interface Options {
  readonly check: () => Promise<TableFinding[]>
  readonly logger: Logger
  readonly now: () => Date
}

interface State {
  errors: readonly TableFinding[]
  running: Promise<void> | null
  isOpen: boolean
  /** True if the first check took too long. Calls then no longer wait for the first check. */
  isLate: boolean
  /** The number of seconds after a check until a call can start the next check. */
  pauseSeconds: number
  sinceCheck: Stopwatch
}

/** How long calls wait for a check, in milliseconds. */
const mostWaitMs = 5_000
/** How long a check may take, in milliseconds. After this time the next check can start. */
const mostCheckMs = 30_000
const longestPauseSeconds = 60

/**
 * Starts the first check immediately. While there is an `error`, `ready()` starts a new check. A call of the store also starts a new check,
 * if enough time has passed since the last check: 1, 2, 4 … 60 s.
 */
export function createReadiness({ check, logger, now }: Options): Readiness {
  const log = findingsLog(logger, now)
  const startedAt = stopwatch(now)
  const state: State = { errors: [], running: null, isOpen: false, isLate: false, pauseSeconds: 1, sinceCheck: startedAt }

  function run(): Promise<void> {
    state.running ??= withTimeout(check(), mostCheckMs, () => new Error('The check takes too long'))
      .then((findings) => {
        state.errors = findings.filter(({ level }) => level === 'error')
        log.tell(findings)
      })
      .catch((error: unknown) => {
        // If the check fails, the earlier errors stay.
        const said = `doorward: the tables could not be checked. ${seeTroubleshooting('a-table-cannot-be-looked-at')}`
        logger.warn({ error: describeError(error) }, said)
      })
      .finally(() => {
        state.running = null
        state.isOpen = state.errors.length === 0
        state.sinceCheck = stopwatch(now)
      })
    return state.running
  }

  function refuseIfBroken(): void {
    if (state.errors.length === 0) return
    log.tellRefusal(state.errors)
    throw new SignInUnavailableError({ cause: new ConfigurationError(listed(state.errors)) })
  }

  /** Waits for the first check. Before the first check ends, nobody knows whether there are errors. */
  async function awaitFirst(running: Promise<void>): Promise<void> {
    if (state.isLate || (await isDone(running, mostWaitMs - startedAt.milliseconds())) || state.isLate) return
    state.isLate = true
    const said = `doorward: the check of the tables takes more than 5 seconds. Until it ends, doorward accepts requests without the check. ${seeTroubleshooting('the-check-of-the-tables-is-slow')}`
    logger.warn({ seconds: mostWaitMs / 1_000 }, said)
  }

  async function checkAgain(): Promise<void> {
    if (!state.running && state.sinceCheck.milliseconds() >= state.pauseSeconds * 1_000) {
      state.pauseSeconds = Math.min(longestPauseSeconds, state.pauseSeconds * 2)
      void run()
    }
    if (state.running) await isDone(state.running, mostWaitMs)
  }

  void run()
  return {
    get isOpen() {
      return state.isOpen
    },
    async pass() {
      if (state.isOpen) return
      if (state.errors.length > 0) await checkAgain()
      else if (state.running) await awaitFirst(state.running)
      refuseIfBroken()
    },
    refuseIfBroken,
    look: check,
    async ready() {
      if (state.running) await state.running
      // The earlier check may have started before the host created the tables.
      if (!state.isOpen) await run()
      if (state.errors.length > 0) throw new ConfigurationError(listed(state.errors))
    },
  }
}

async function isDone(work: Promise<void>, mostMs: number): Promise<boolean> {
  const late = new Error('The check is late')
  try {
    await withTimeout(work, Math.max(0, mostMs), () => late)
    return true
  } catch (error) {
    if (error !== late) throw error
    return false
  }
}

function listed(errors: readonly TableFinding[]): string {
  const lines = errors.map(({ key, message, sql }) => `- ${key}: ${message}${sql === null ? '' : `\n  ${sql};`}`)
  return `The tables cannot serve (${errors.length === 1 ? '1 error' : `${errors.length} errors`}):\n${lines.join('\n')}`
}

/** Logs each finding once. Also logs, at most once a minute, that requests are rejected. */
interface FindingsLog {
  tell(findings: readonly TableFinding[]): void
  tellRefusal(errors: readonly TableFinding[]): void
}

const minute = 60_000

function findingsLog(logger: Logger, now: () => Date): FindingsLog {
  const told = new Set<string>()
  let sinceTold = stopwatch(now)
  let wasBroken = false
  return {
    tell(findings) {
      for (const finding of findings) {
        if (told.has(finding.key)) continue
        told.add(finding.key)
        const { key, level, table, column, message, sql } = finding
        if (level === 'error') sinceTold = stopwatch(now)
        logger[level === 'error' ? 'error' : 'warn']({ key, table, column, sql }, `doorward: ${message}`)
      }
      const isBroken = findings.some(({ level }) => level === 'error')
      if (wasBroken && !isBroken)
        logger.info({ checked: [...told] }, 'doorward: the tables have no errors any more, so doorward accepts requests.')
      wasBroken = isBroken
    },
    tellRefusal(errors) {
      if (sinceTold.milliseconds() < minute) return
      sinceTold = stopwatch(now)
      const findings = errors.map(({ key, table, column, sql }) => ({ key, table, column, sql }))
      const keys = errors.map(({ key }) => key).join(', ')
      logger.error(
        { findings },
        `doorward: requests that need the store get 503, because the tables have errors: ${keys}. ${seeTroubleshooting('sign-in-is-not-available')}`,
      )
    },
  }
}

/** The tables have an error that only the host can fix. An immediate retry does not help. */
class SignInUnavailableError extends ServiceUnavailableError {
  static override readonly detail = localized('error.sign_in_unavailable')

  override readonly retryAfterSeconds = 60
  override readonly isLogged = true
}

interface Stopwatch {
  milliseconds(): number
}

/**
 * Measures the time since the call. Reads two clocks, the host's clock and the process's clock, and returns the longer time. The host's
 * clock alone is not enough, because it can stop or go back.
 */
function stopwatch(now: () => Date): Stopwatch {
  const [started, startedAt] = [performance.now(), now().getTime()]
  return { milliseconds: () => Math.max(performance.now() - started, now().getTime() - startedAt) }
}

/**
 * The property of `globalThis` that the command sets while it loads the app for `migrate`. Routers made meanwhile do not check their tables,
 * because the tables may not exist yet. The symbol is global, because the command may come from another copy of the package.
 */
export const UNCHECKED = Symbol.for('doorward.unchecked')

/**
 * Returns the findings that the host does not ignore, the errors first. A key in `ignore` may also begin with the table's real name, such
 * as `people.email:unique`.
 */
export function withoutIgnored(findings: readonly TableFinding[], ignore: readonly string[]): TableFinding[] {
  const ignored = new Set(ignore)
  const kept = findings.filter((finding) => !ignored.has(finding.key) && !ignored.has(keyByTable(finding)))
  return [...kept.filter(({ level }) => level === 'error'), ...kept.filter(({ level }) => level !== 'error')]
}

function keyByTable({ key, table }: TableFinding): string {
  return key.replace(/^\w+/, table)
}

type Verb = (...given: never[]) => unknown

/**
 * Returns a store that waits for the check of its tables before each call. While there is an `error`, the store rejects the call. If the
 * tables are correct, a call only reads a flag.
 */
export function guardedStore(store: AuthStore, readiness: Readiness): AuthStore {
  return guarded(store, (verb) => (readiness.isOpen ? verb() : readiness.pass().then(verb)))
}

/**
 * Returns a store for a host's transaction. If the check of the tables found an `error`, the store rejects every call. If the check has not
 * ended, calls do not wait for it (`Readiness.refuseIfBroken`).
 */
export function guardedTransaction(store: AuthStore, readiness: Readiness): AuthStore {
  return guarded(store, (verb) =>
    readiness.isOpen
      ? verb()
      : Promise.resolve()
          .then(() => readiness.refuseIfBroken())
          .then(verb),
  )
}

type Gate = (verb: () => unknown) => unknown

function guarded(store: AuthStore, gate: Gate): AuthStore {
  const { users, userTokens, identities, recoveryCodes, passkeys, sessions, emailLogins, trustedDevices, afterCommit } = store
  const { invitations, invitationUses, outbox, leases } = store
  return {
    users: guardedTable(users, gate),
    userTokens: guardedTable(userTokens, gate),
    ...(identities && { identities: guardedTable(identities, gate) }),
    ...(recoveryCodes && { recoveryCodes: guardedTable(recoveryCodes, gate) }),
    ...(passkeys && { passkeys: guardedTable(passkeys, gate) }),
    ...(sessions && { sessions: guardedTable(sessions, gate) }),
    ...(emailLogins && { emailLogins: guardedTable(emailLogins, gate) }),
    ...(trustedDevices && { trustedDevices: guardedTable(trustedDevices, gate) }),
    ...(invitations && { invitations: guardedTable(invitations, gate) }),
    ...(invitationUses && { invitationUses: guardedTable(invitationUses, gate) }),
    ...(outbox && { outbox: guardedTable(outbox, gate) }),
    ...(leases && { leases: guardedTable(leases, gate) }),
    // The result has the type of the store's own transaction.
    transaction: <T>(...given: Parameters<AuthStore['transaction']>) => gate(() => store.transaction(...given)) as Promise<T>,
    ...(afterCommit && { afterCommit: (effect) => store.afterCommit?.(effect) }),
  }
}

/**
 * Returns a table whose methods call `gate` before the original method. The methods are made once, so that a call finds a method as fast as
 * in the original table.
 */
function guardedTable<Table extends object>(table: Table, gate: Gate): Table {
  const entries = namesOf(table).map((name): [string, unknown] => {
    const value: unknown = Reflect.get(table, name)
    if (typeof value !== 'function') return [name, value]
    return [name, (...given: unknown[]) => gate(() => Reflect.apply(value as Verb, table, given))]
  })
  return Object.fromEntries(entries) as Table // the table has the same names
}

/** Returns the names of all members. An adapter's table may be an instance of a class, so the function also reads the prototypes. */
function namesOf(table: object): string[] {
  const names = new Set<string>()
  for (let level: object | null = table; level && level !== Object.prototype; level = Object.getPrototypeOf(level))
    for (const name of Object.getOwnPropertyNames(level)) names.add(name)
  return [...names].filter((name) => name !== 'constructor')
}
