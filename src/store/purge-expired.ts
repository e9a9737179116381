import { ConfigurationError } from '../errors'
import { consoleLogger, type Logger } from '../logger'
import type { AuthStore, Expired, UserStore } from './auth-store'
import { emptyInBatches } from './empty-in-batches'

export interface PurgeOptions {
  /** What ended then, or earlier, goes. Default: now; an earlier instant keeps rows for a while. One in the future ends what is alive. */
  before?: Date
  /** Told once of pending accounts that stay because another table refers to them. Default: the console. */
  logger?: Pick<Logger, 'warn'>
  /** The log that `auditLog()` returned: its rows older than its `keepDays` go too, whatever `before` says. */
  auditLog?: {
    /** Deletes rows of the log and returns how many. */
    purge(): Promise<number>
  }
}

/** How long a pending account stays after its last activation link has expired. */
const abandonedAfterMs = 7 * 86_400_000

/**
 * Deletes rows that can no longer matter: one-shot tokens and email logins past their end, and sessions that ended or expired. A row that tells an
 * activated account from one that never was stays. Pending accounts that nobody activated go seven days after their last link expired. In
 * batches, each a statement of its own along an index,
 * so that it can run beside a live service and be stopped at any time; run it from a job of yours, once a day or hour.
 *
 * @returns how many rows of each table were deleted: `{ users, userTokens, sessions, emailLogins, auditLog }`, without the tables the store lacks, and
 *   without `auditLog` where none was given
 * @throws ConfigurationError for a `before` that is no instant; ServiceUnavailableError when the database cannot be reached
 */
export async function purgeExpired(
  store: AuthStore,
  { before = new Date(), logger = consoleLogger, auditLog }: PurgeOptions = {},
): Promise<Record<string, number>> {
  if (!(before instanceof Date) || Number.isNaN(before.getTime())) throw new ConfigurationError('purgeExpired: `before` must be a Date.')
  const { userTokens, sessions, emailLogins } = store
  const deleted: Record<string, number> = {}
  // Before the token rows, which say when an account was abandoned.
  if (store.users.deleteAbandoned) deleted['users'] = await deleteAbandoned(store.users, before, logger)
  for (const [name, table] of Object.entries({ userTokens, sessions, emailLogins })) {
    if (table) deleted[name] = await emptyInBatches(deletionOf(name, table), before)
  }
  if (auditLog) deleted['auditLog'] = await auditLog.purge()
  return deleted
}

function deletionOf(name: string, table: { deleteExpired(expired: Expired): Promise<number> }): (expired: Expired) => Promise<number> {
  if (typeof table.deleteExpired === 'function') return (expired) => table.deleteExpired(expired)
  throw new ConfigurationError(`purgeExpired: the store's ${name} has no deleteExpired(); storeContract() says what it has to do.`)
}

async function deleteAbandoned(users: UserStore, before: Date, logger: Pick<Logger, 'warn'>): Promise<number> {
  let held = 0
  const deleted = await emptyInBatches(async ({ most }) => {
    const result = await users.deleteAbandoned?.({ before: new Date(before.getTime() - abandonedAfterMs), most })
    held += result?.held ?? 0
    return result?.deleted ?? 0
  }, before)
  if (held > 0)
    logger.warn(
      { held },
      'doorward: pending accounts that nobody activated stay, because rows of other tables refer to them; delete those rows, or let their foreign keys cascade.',
    )
  return deleted
}
