import { deleteDueAccounts } from '../../accounts/deletion/due-deletions'
import type { AuthContext } from '../../context'
import type { AuthEventPayloads } from '../../core/events'
import { auditLogsOf } from '../../observers/audit-log'
import type { AuthStore } from '../../store/auth-store'
import { purgeStateOf } from '../../store/knex/purge-state'
import { deleteExpiredRows, emptyInBatches, type PurgeProgress } from '../../store/purge-expired'

/**
 * Also deletes ended counters, and old rows of the audit logs that watch this router. Emits `purge.done`.
 * @param store the store as the host passed it
 * @param signal ends the purge after the current batch. Unless the purge was done by then, there is no event
 * @param progress how far earlier purges came that were ended. Empty after a purge that came to its end
 */
export async function purgeNow(
  ctx: AuthContext,
  store: AuthStore,
  signal?: AbortSignal,
  progress: PurgeProgress = new Map(),
): Promise<Record<string, number>> {
  await ctx.readiness?.pass()
  const begun = performance.now()
  const before = ctx.now()
  const deleted: Record<string, number> = {}
  const state = await purgeStateOf(store)
  if (state) deleted['counters'] = await emptyInBatches(state.deleteCounters, before, { signal })
  for (const log of auditLogsOf(ctx.events)) deleted['auditLog'] = (deleted['auditLog'] ?? 0) + (await log.purge({ signal }))
  Object.assign(deleted, await deleteExpiredRows(store, before, ctx.logger, { signal, progress }))
  const deletions = await deleteDueAccounts(ctx, { signal })
  if (ctx.settings.accountDeletion !== 'off') deleted['deletions'] = deletions.done
  if (![...progress.values()].every(({ isOver }) => isOver)) return deleted
  progress.clear()
  await state?.recordEnd(ctx.now())
  const milliseconds = Math.round(performance.now() - begun)
  ctx.events.emit('purge.done', { ...(deleted as Omit<AuthEventPayloads['purge.done'], 'milliseconds'>), milliseconds }) // the same tables
  return deleted
}

/** Not while another process purges, or soon after its purge. Without the state, every process purges: two at once do no harm. */
export async function purgeInTurn(
  ctx: AuthContext,
  store: AuthStore,
  everyMs: number,
  { signal, progress }: { signal: AbortSignal; progress: PurgeProgress },
): Promise<void> {
  const state = await purgeStateOf(store)
  const nextEnd = () => ctx.now().getTime() + Math.floor(everyMs * 0.9)
  let end = nextEnd()
  if (!state) return void (await purgeNow(ctx, store, signal, progress))
  if (!(await state.take(ctx.now().getTime(), end))) return
  const lost = new AbortController()
  const extend = async () => {
    const next = nextEnd()
    if (!(await state.extend(end, next))) lost.abort()
    end = next
  }
  // If the database fails, the lease may end. A second purge does no harm.
  let extending: Promise<void> = Promise.resolve()
  const timer = setInterval(() => {
    extending = extend().catch(() => undefined)
  }, everyMs / 3).unref()
  try {
    await purgeNow(ctx, store, AbortSignal.any([signal, lost.signal]), progress)
  } finally {
    clearInterval(timer)
    await extending
    // A purge that `drain` ended gives the lease back, so that this process or another one goes on.
    if (signal.aborted && progress.size > 0) await state.extend(end, ctx.now().getTime())
  }
}
