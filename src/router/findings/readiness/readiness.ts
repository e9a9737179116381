import type { Readiness } from '../../../context'
import { ConfigurationError } from '../../../core/errors'
import { describeError, type Logger } from '../../../core/logger'
import { seeTroubleshooting } from '../../../core/troubleshooting'
import { withTimeout } from '../../../core/with-timeout'
import type { TableFinding } from '../../../store/auth-store'
import { findingsLog } from './findings-log'
import { SignInUnavailableError } from './sign-in-unavailable-error'
import { type Stopwatch, stopwatch } from './stopwatch'

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
