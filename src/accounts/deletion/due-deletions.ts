import type { AuthContext } from '../../context'
import { NotFoundError } from '../../core/errors'
import { describeError } from '../../core/logger'
import type { UserRecord } from '../../store/auth-store'
import type { BatchOptions } from '../../store/purge-expired'
import { deleteWithRows, deleting } from './delete-account'

export interface DueDeletions {
  /** How many accounts were deleted. */
  readonly done: number
  /** How many could not be deleted. The next purge tries them again. */
  readonly failed: number
}

const batch = 20

/** Each account in its own transaction, so that one that cannot be deleted does not hold up the others. @param signal ends it after an account */
export async function deleteDueAccounts(
  ctx: AuthContext,
  { signal, afterBatch }: Pick<BatchOptions, 'signal' | 'afterBatch'> = {},
): Promise<DueDeletions> {
  const { users } = ctx.store
  if (ctx.settings.accountDeletion === 'off' || !users.listDeletions) return { done: 0, failed: 0 }
  const by = new Date(ctx.now().getTime() - ctx.settings.accountDeletionDays * 86_400_000)
  const result = { done: 0, failed: 0 }
  for (let after: UserRecord | null = null; ; ) {
    const due: UserRecord[] = await users.listDeletions({ by, after, most: batch })
    for (const user of due) {
      if (signal?.aborted) return result
      const end = await deleteDue(ctx, user, by)
      if (end !== 'left') result[end] += 1
    }
    await afterBatch?.()
    const last = due.at(-1)
    if (last === undefined || due.length < batch) return result
    after = last
  }
}

/** `left`: the account came back, or another purge has deleted it. */
async function deleteDue(ctx: AuthContext, { id }: UserRecord, by: Date): Promise<keyof DueDeletions | 'left'> {
  try {
    await deleting(ctx, id, async (ctx) => {
      const user = await ctx.store.users.lock(id)
      if (!user || user.isActive || !user.deletionRequestedAt || user.deletionRequestedAt > by) throw new NotFoundError()
      await deleteWithRows(ctx, user, { requestedBy: by })
    })
    return 'done'
  } catch (error) {
    if (error instanceof NotFoundError) return 'left'
    ctx.logger.error(
      { userId: id, error: describeError(error) },
      'doorward: an account could not be deleted. The next purge tries it again',
    )
    return 'failed'
  }
}
