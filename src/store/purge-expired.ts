import { setTimeout as delay } from 'node:timers/promises'
import { ConfigurationError } from '../core/errors'
import { consoleLogger, type Logger } from '../core/logger'
import type { AuthStore, Expired, PurgeRun, UserStore } from './auth-store'

export interface PurgeOptions {
  /** Deletes rows that ended at this time or earlier. Default: now. An earlier time keeps rows longer. A future time ends live sessions. */
  before?: Date
  /** Gets one warning about pending accounts that stay because another table refers to them, and one about due deletions. Default: the console. */
  logger?: Pick<Logger, 'warn'>
  /** The log of `auditLog()`. Also deletes the rows that are older than the log's `keepDays`, whatever `before` is. */
  auditLog?: {
    /** Deletes rows of the log and returns how many. */
    purge(): Promise<number>
  }
  /** The setting `accountDeletionDays` of your router, for the warning about due deletions. Default 30. */
  accountDeletionDays?: number
}

/** Counted from the expiry of the account's last activation link. */
const abandonedAfterMs = 7 * 86_400_000
/** A delivered event stays so long, for a look at what was delivered. */
const keptDeliveredMs = 86_400_000

/** Counted from the expiry of the invitation. */
const invitationsStayMs = 30 * 86_400_000

/**
 * Deletes rows that are no longer needed: expired tokens and email logins, trusted devices that ended, events of the outbox that were delivered a day ago, and sessions that were revoked or expired. Pending accounts are
 * deleted seven days after their last activation link expired, and invitations 30 days after their end. A used activation token stays if the users table has no `activatedAt`,
 * because the token then shows that the account was activated.
 *
 * Accounts whose deletion is due stay, with one warning: `onDelete` belongs to the router, so `auth.service.purge()` deletes them.
 *
 * Works in short batches, along indexes. So `purgeExpired` can run next to a live service, and you can stop it at any time. Call
 * `purgeExpired` from your own job, once a day or an hour.
 *
 * @returns how many rows of each table were deleted: `{ users, userTokens, sessions, emailLogins, trustedDevices, invitations, outbox, auditLog }`. Tables that the store lacks
 * are absent. If no audit log was given, `auditLog` is absent.
 * @throws ConfigurationError if `before` is not a valid Date; ServiceUnavailableError when the database cannot be reached
 */
export async function purgeExpired(
  store: AuthStore,
  { before = new Date(), logger = consoleLogger, auditLog, accountDeletionDays = 30 }: PurgeOptions = {},
): Promise<Record<string, number>> {
  if (!(before instanceof Date) || Number.isNaN(before.getTime())) throw new ConfigurationError('purgeExpired: `before` must be a Date.')
  const deleted = {
    ...(await runSteps(expiredRows(store, before, logger))),
    ...(auditLog && { auditLog: await auditLog.purge() }),
  }
  if (await hasDueDeletions(store.users, new Date(before.getTime() - accountDeletionDays * 86_400_000)))
    logger.warn(
      {},
      'doorward: purgeExpired leaves accounts whose deletion is due. Call `auth.service.purge()` or run `npx doorward purge`, which delete them too.',
    )
  return deleted
}

/** False if the table is of an earlier version: without the column, no account waits. */
async function hasDueDeletions(users: UserStore, by: Date): Promise<boolean> {
  const due = await users.listDeletions?.({ by, after: null, most: 1 }).catch(() => [])
  return due !== undefined && due.length > 0
}

/** If a purge is ended, the next one goes on there. */
export type PurgeProgress = Map<string, PurgeRun>

/** Deletes the rows of one table, in batches. */
export interface PurgeStep {
  readonly name: string
  /** Waits until this step is over. */
  readonly after?: string
  readonly isPresent?: () => Promise<boolean>
  /** Sets `run.isOver` at its end. */
  readonly deleteAll: (options: BatchOptions & { run: PurgeRun }) => Promise<number>
}

interface StepOptions extends Pick<BatchOptions, 'signal' | 'afterBatch'> {
  progress?: PurgeProgress
  /** Hears of a step that failed, and the next ones go on. Absent: the error is thrown. */
  failed?: (name: string, error: unknown) => void
}

/** Leaves out the steps that `progress` calls done. Returns the number of deleted rows of each step. */
export async function runSteps(
  steps: readonly PurgeStep[],
  { progress = new Map(), failed, ...options }: StepOptions = {},
): Promise<Record<string, number>> {
  const deleted: Record<string, number> = {}
  for (const { name } of steps) progress.set(name, progress.get(name) ?? {}) // not done, even if the steps before it are not either
  for (const { name, after, isPresent, deleteAll } of steps) {
    const run: PurgeRun = progress.get(name) ?? {}
    if (after !== undefined && progress.get(after)?.isOver !== true) continue
    try {
      if ((await isPresent?.()) === false) progress.delete(name)
      else deleted[name] = run.isOver ? 0 : await deleteAll({ ...options, run })
    } catch (error) {
      if (!failed) throw error
      failed(name, error)
    }
  }
  return deleted
}

type ExpiringTable = { deleteExpired(expired: Expired): Promise<number>; isPresent?(): Promise<boolean> }

/** The table whose rows take the least time first. */
export function expiredRows(store: AuthStore, before: Date, logger: Pick<Logger, 'warn'>): PurgeStep[] {
  const { users, userTokens, sessions, emailLogins, trustedDevices, invitations, outbox } = store
  const ended = (ms: number) => new Date(before.getTime() - ms)
  const emptying = (name: string, table: ExpiringTable | undefined, end = before): PurgeStep[] => {
    if (!table) return []
    const isPresent = async () => (await table.isPresent?.()) !== false
    return [{ name, isPresent, deleteAll: async (options) => emptyInBatches(deletionOf(name, table), end, options) }]
  }
  const delivered = outbox && {
    deleteExpired: (expired: Expired) => outbox.deleteDelivered(expired),
    isPresent: async () => (await outbox.isPresent?.()) !== false,
  }
  const abandoned: PurgeStep = { name: 'users', deleteAll: (options) => deleteAbandoned(users, before, logger, options) }
  return [
    ...emptying('emailLogins', emailLogins),
    ...emptying('trustedDevices', trustedDevices),
    ...emptying('invitations', invitations, ended(invitationsStayMs)),
    ...emptying('outbox', delivered, ended(keptDeliveredMs)),
    ...emptying('sessions', sessions),
    ...(users.deleteAbandoned ? [abandoned] : []),
    // The rows of `userTokens` show when an account was abandoned.
    ...emptying('userTokens', userTokens).map((step) => (users.deleteAbandoned ? { ...step, after: abandoned.name } : step)),
  ]
}

function deletionOf(name: string, table: { deleteExpired(expired: Expired): Promise<number> }): (expired: Expired) => Promise<number> {
  if (typeof table.deleteExpired === 'function') return (expired) => table.deleteExpired(expired)
  throw new ConfigurationError(`purgeExpired: the store's ${name} has no deleteExpired(); storeContract() tests what it must do.`)
}

async function deleteAbandoned(users: UserStore, before: Date, logger: Pick<Logger, 'warn'>, options: BatchOptions): Promise<number> {
  let held = 0
  const longAgo = new Date(before.getTime() - abandonedAfterMs)
  const deleteBatch = async (expired: Expired) => {
    const result = await users.deleteAbandoned?.(expired)
    held += result?.held ?? 0
    return result?.deleted ?? 0
  }
  const deleted = await emptyInBatches(deleteBatch, longAgo, options)
  if (held > 0)
    logger.warn(
      { held },
      'doorward: pending accounts that nobody activated stay, because rows of other tables refer to them; delete those rows, or let their foreign keys cascade.',
    )
  return deleted
}

/** In rows. */
const [firstSize, leastSize, mostSize] = [20, 20, 2_000]
/** The driver of SQLite blocks the process while a statement runs. The limit there is 20 ms, so this leaves room for a slow batch. */
const goalMs = 10
/** Factor of the last batch's time. Other users of the database work meanwhile. */
const [pauseFactor, leastPauseMs] = [2, 2]

export interface BatchOptions {
  /** At its end, `isOver` is true. Default: it begins. */
  run?: PurgeRun | undefined
  /** Ends the run after the current batch. With a signal, the pauses do not keep the process alive. */
  signal?: AbortSignal | undefined
  /** Called after each batch. */
  afterBatch?: (() => Promise<void>) | undefined
  /** A monotonic clock in milliseconds. */
  clock?: () => number
}

export async function emptyInBatches(
  deleteExpired: (expired: Required<Expired>) => Promise<number>,
  before: Date,
  { run = {}, signal, afterBatch, clock = () => performance.now() }: BatchOptions = {},
): Promise<number> {
  for (let deleted = 0, most = firstSize; ; ) {
    const started = clock()
    const count = await deleteExpired({ before, most, run })
    const tookMs = clock() - started
    deleted += count
    await afterBatch?.()
    if (run.isOver ?? count < most) {
      run.isOver = true
      return deleted
    }
    most = nextSize(most, tookMs)
    const pauseMs = Math.max(leastPauseMs, pauseFactor * tookMs)
    await delay(pauseMs, undefined, signal ? { signal, ref: false } : {}).catch(() => undefined)
    if (signal?.aborted) return deleted // never before the first batch: a purge that is always ended goes on in the end
  }
}

/** Grows at most by half at once, because one fast batch says little. */
function nextSize(size: number, tookMs: number): number {
  const fitting = Math.floor((size * goalMs) / Math.max(tookMs, 0.1))
  return Math.max(leastSize, Math.min(fitting, Math.ceil(size * 1.5), mostSize))
}
