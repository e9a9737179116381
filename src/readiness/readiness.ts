import { ConfigurationError } from '../errors'
import { inTime } from '../in-time'
import { describeError, type Logger } from '../logger'
import type { TableFinding } from '../store/auth-store'
import { seeTroubleshooting } from '../troubleshooting'
import { findingsLog } from './findings-log'
import { SignInUnavailableError } from './sign-in-unavailable-error'
import { type Stopwatch, stopwatch } from './stopwatch'

/** Whether the tables let the store do its work. */
export interface Readiness {
  /** True once nothing stands in the way: calls need not ask any more. */
  readonly isOpen: boolean
  /** Waits for the check that is under way. @throws SignInUnavailableError while an `error` stands */
  pass(): Promise<void>
  /** The same without waiting: inside a transaction of the host's the check could wait for that very transaction. */
  refuseIfBroken(): void
  /** Makes the check again, and returns what it finds, whatever stood before. */
  look(): Promise<readonly TableFinding[]>
  /** Waits for the check, and makes it again while an `error` stands. @throws ConfigurationError that lists every `error` */
  ready(): Promise<void>
}

interface Options {
  readonly check: () => Promise<TableFinding[]>
  readonly logger: Logger
  readonly now: () => Date
}

interface State {
  errors: readonly TableFinding[]
  running: Promise<void> | null
  isOpen: boolean
  /** The first check took too long, so nobody waits for it any more. */
  isLate: boolean
  /** Until the first call that makes the check again. */
  pauseSeconds: number
  sinceCheck: Stopwatch
}

/** How long calls wait for a check. */
const mostWaitMs = 5_000
/** A check that hangs is given up, so that the next one can begin. */
const mostCheckMs = 30_000
const longestPauseSeconds = 60

/** Starts the check at once. While an `error` stands, `ready()` makes it again, and so does the first call 1, 2, 4 … 60 s after the last one. */
export function createReadiness({ check, logger, now }: Options): Readiness {
  const log = findingsLog(logger, now)
  const startedAt = stopwatch(now)
  const state: State = { errors: [], running: null, isOpen: false, isLate: false, pauseSeconds: 1, sinceCheck: startedAt }

  function run(): Promise<void> {
    state.running ??= inTime(check(), mostCheckMs, () => new Error('The check takes too long'))
      .then((findings) => {
        state.errors = findings.filter(({ level }) => level === 'error')
        log.tell(findings)
      })
      .catch((error: unknown) => {
        // What stood before the check stands after it.
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
    throw new SignInUnavailableError()
  }

  /** Nobody knows yet whether anything is wrong. */
  async function awaitFirst(running: Promise<void>): Promise<void> {
    if (state.isLate || (await isDone(running, mostWaitMs - startedAt.milliseconds())) || state.isLate) return
    state.isLate = true
    const said = `doorward: the check of the tables takes more than 5 seconds; requests go on unchecked until it ends. ${seeTroubleshooting('the-check-of-the-tables-is-slow')}`
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
      if (!state.isOpen) await run() // the one before may have begun before the tables were made
      if (state.errors.length > 0) throw new ConfigurationError(listed(state.errors))
    },
  }
}

async function isDone(work: Promise<void>, mostMs: number): Promise<boolean> {
  const late = new Error('The check is late')
  try {
    await inTime(work, Math.max(0, mostMs), () => late)
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
