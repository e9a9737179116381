import type { AuthContext } from '../context'
import { ConflictError, ForbiddenError, NotFoundError } from '../core/errors'
import { holdSession } from '../sessions/reauthentication/fresh-session'
import type { SessionRecord, UserRecord } from '../store/auth-store'

/** The administrator who acts. Left out if the host itself acts. The host itself needs no administrator rights. */
export interface ActingAdmin {
  /** The id of the administrator. */
  by: string
  /** The session of the administrator. If the session has ended, the action fails. */
  session?: SessionRecord | null | undefined
}

/**
 * Rejects an administrator without an id, because such a call must not count as the host's own call.
 * @throws TypeError
 */
export function requireNamed(acting: ActingAdmin | undefined): ActingAdmin | undefined {
  if (acting === undefined || typeof acting.by === 'string') return acting
  throw new TypeError('`by` must be the id of the administrator who acts. If your own code acts, omit the argument.')
}

/**
 * Locks the account's row. Call the function first in a transaction. If an administrator acts, the function first locks the rows of all
 * active administrators. If two administrators act against each other at once, the second administrator sees the change of the first. The
 * lock works across processes.
 *
 * @throws ConflictError with `takesPower`, if the account is the acting administrator or the last active administrator; ForbiddenError if
 *   `by` is not an active administrator; NotFoundError
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
