import type { AuthContext } from '../context'
import { ConflictError, ForbiddenError, NotFoundError } from '../errors'
import { holdSession } from '../step-up/fresh-session'
import type { SessionRecord, UserRecord } from '../store/auth-store'

/** On whose behalf something is done to an account. Not given: the host itself acts, and nothing is refused. */
export interface ActingAdmin {
  /** An administrator's id. */
  by: string
  /** The session in which the administrator acts: nothing happens where it has ended. */
  session?: SessionRecord | null | undefined
}

/** A caller who names an administrator that turns out to be nobody must not act as the host. @throws TypeError */
export function requireNamed(acting: ActingAdmin | undefined): ActingAdmin | undefined {
  if (acting === undefined || typeof acting.by === 'string') return acting
  throw new TypeError('`by` must be the id of the administrator who acts; leave the whole argument out where the host itself does.')
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
  acting: ActingAdmin | undefined,
  { takesPower = false }: { takesPower?: boolean } = {},
): Promise<UserRecord> {
  if (acting) await lockAdmins(ctx, userId, acting, takesPower)
  const user = await ctx.store.users.lock(userId)
  if (!user) throw new NotFoundError()
  return user
}

async function lockAdmins(ctx: AuthContext, userId: string, { by, session }: ActingAdmin, takesPower: boolean): Promise<void> {
  const ids = (await ctx.store.users.lockAdmins()).map(({ id }) => id)
  const isLast = ids.length === 1 && ids[0] === userId
  if (takesPower && (userId === by || isLast)) throw new ConflictError()
  if (!ids.includes(by)) throw new ForbiddenError()
  await holdSession(ctx, session)
}
