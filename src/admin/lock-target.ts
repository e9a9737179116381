import type { AuthContext } from '../context'
import { ConflictError, ForbiddenError, NotFoundError } from '../errors'
import type { UserRecord } from '../store/auth-store'

/** On whose behalf something is done to an account. */
export interface ActingAdmin {
  /** An administrator's id. Not given: the host itself acts, and what an administrator may not do is not refused. */
  by?: string | undefined
}

/**
 * First thing in a unit: the account's row, locked. For an administrator every active administrator is locked before it,
 * so that of two who act against each other at once, from whatever processes, the second meets what the first one did.
 *
 * @throws ConflictError for what takes power away from oneself or from the last active administrator; ForbiddenError when
 *   `by` is no active administrator any more; NotFoundError
 */
export async function lockTarget(
  ctx: AuthContext,
  userId: string,
  { by, takesPower = false }: ActingAdmin & { takesPower?: boolean },
): Promise<UserRecord> {
  if (by !== undefined) await lockAdmins(ctx, userId, by, takesPower)
  const user = await ctx.store.users.lock(userId)
  if (!user) throw new NotFoundError()
  return user
}

async function lockAdmins(ctx: AuthContext, userId: string, by: string, takesPower: boolean): Promise<void> {
  const ids = (await ctx.store.users.lockAdmins()).map(({ id }) => id)
  const isLast = ids.length === 1 && ids[0] === userId
  if (takesPower && (userId === by || isLast)) throw new ConflictError()
  if (!ids.includes(by)) throw new ForbiddenError()
}
