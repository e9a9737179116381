import { randomUUID } from 'node:crypto'
import { deleteDueAccounts } from '../../accounts/deletion/due-deletions'
import type { AuthContext } from '../../context'
import { describeError } from '../../core/logger'
import { auditLogsOf } from '../../observers/audit-log'
import type { AuthStore } from '../../store/auth-store'
import { endedCountersOf, purgeLease } from '../../store/knex/purge-state'
import { emptyInBatches, expiredRows, type PurgeProgress, type PurgeStep, runSteps } from '../../store/purge-expired'

const leaseMs = 10 * 60_000

interface Purging {
  /** Ends the purge after the current batch. Unless the purge was done by then, there is no event. */
  readonly signal?: AbortSignal
  /** How far earlier purges came that were ended. Empty after a purge that came to its end. */
  readonly progress?: PurgeProgress
  readonly afterBatch?: () => Promise<void>
}

/**
 * What the timer, `service.purge()` and the command do. A table that fails is logged, and the others go on. Emits `purge.done`.
 * @param store the store as the host passed it
 * @returns how many rows of each table were deleted
 * @throws the first error if every table failed
 */
export async function purgeNow(
  ctx: AuthContext,
  store: AuthStore,
  { progress = new Map(), ...options }: Purging = {},
): Promise<Record<string, number>> {
  await ctx.readiness?.pass()
  const begun = performance.now()
  const failures = new Map<string, unknown>()
  const failed = (name: string, error: unknown) => void failures.set(name, error)
  const leaving = { failed: 0 }
  const deleted = await runSteps(stepsOf(ctx, store, leaving), { ...options, progress, failed })
  if (failures.size > 0 && Object.keys(deleted).length === 0) throw [...failures.values()][0]
  for (const [table, error] of failures) logFailure(ctx, table, error)
  if (options.signal?.aborted && ![...progress.values()].every(({ isOver }) => isOver)) return deleted
  progress.clear()
  await recordRun(ctx, store)
  const { deletions: accounts = 0, ...rows } = deleted
  const total = Object.values(rows).reduce((sum, count) => sum + count, 0)
  ctx.events.emit('purge.done', { rows: total, accounts, failed: leaving.failed, durationMs: Math.round(performance.now() - begun) })
  return deleted
}

/** In this order. */
function stepsOf(ctx: AuthContext, store: AuthStore, leaving: { failed: number }): PurgeStep[] {
  const before = ctx.now()
  return [...expiredRows(store, before, ctx.logger), ...dueDeletions(ctx, leaving), ...oldEvents(ctx), endedCounters(store, before)]
}

/** @param leaving gets the number of accounts that could not be deleted */
function dueDeletions(ctx: AuthContext, leaving: { failed: number }): PurgeStep[] {
  if (ctx.settings.accountDeletion === 'off') return []
  return [
    {
      name: 'deletions',
      async deleteAll({ signal, afterBatch, run }) {
        const { done, failed } = await deleteDueAccounts(ctx, { signal, afterBatch })
        leaving.failed += failed
        run.isOver = !signal?.aborted
        return done
      },
    },
  ]
}

/** Of the audit logs that watch this router. */
function oldEvents({ events }: AuthContext): PurgeStep[] {
  const logs = auditLogsOf(events)
  if (logs.length === 0) return []
  return [
    {
      name: 'auditLog',
      async deleteAll({ signal, afterBatch, run }) {
        let deleted = 0
        for (const log of logs) deleted += await log.purge({ signal, afterBatch })
        run.isOver = !signal?.aborted
        return deleted
      },
    },
  ]
}

function endedCounters(store: AuthStore, before: Date): PurgeStep {
  return {
    name: 'counters',
    isPresent: async () => (await endedCountersOf(store)) !== null,
    async deleteAll(options) {
      const deleteEnded = await endedCountersOf(store)
      return deleteEnded ? emptyInBatches(deleteEnded, before, options) : 0
    },
  }
}

async function recordRun(ctx: AuthContext, { leases }: AuthStore): Promise<void> {
  try {
    if (leases && (await leases.isPresent?.()) !== false) await leases.recordRun(purgeLease, ctx.now())
  } catch (error) {
    logFailure(ctx, 'leases', error)
  }
}

function logFailure({ logger }: AuthContext, table: string, error: unknown): void {
  const fields = { table, error: describeError(error) }
  logger.warn(fields, 'doorward: the purge of a table failed. The others were purged, and it is tried again at the next purge')
}

/** Not while another process purges, or soon after its purge. The lease only saves work: two purges at once do no harm. */
export async function purgeInTurn(
  ctx: AuthContext,
  store: AuthStore,
  everyMs: number,
  { signal, progress }: { signal: AbortSignal; progress: PurgeProgress },
): Promise<void> {
  const { leases } = store
  if (!leases || (await leases.isPresent?.()) === false) return
  const lease = { id: purgeLease, holder: randomUUID() }
  const until = () => new Date(ctx.now().getTime() + leaseMs)
  const ranBefore = new Date(ctx.now().getTime() - Math.floor(everyMs * 0.9))
  if (!(await leases.take({ ...lease, now: ctx.now(), until: until(), ranBefore }))) return
  const lost = new AbortController()
  const afterBatch = async () => {
    // If the database fails, the next batch says so.
    if (!(await leases.renew({ ...lease, until: until() }).catch(() => true))) lost.abort()
  }
  try {
    await purgeNow(ctx, store, { signal: AbortSignal.any([signal, lost.signal]), progress, afterBatch })
  } finally {
    await leases.release(lease).catch(() => undefined) // it ends by itself
  }
}
