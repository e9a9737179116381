import type { AuthContext } from '../../context'
import { AccountInactiveError, UnauthorizedError } from '../../core/errors'
import type { UserRecord } from '../../store/auth-store'

/**
 * Returns the user of a session if the account is active.
 * @throws UnauthorizedError (the account was deleted), AccountInactiveError
 */
export async function findActiveUser(ctx: AuthContext, userId: string): Promise<UserRecord> {
  const user = await ctx.store.users.find(userId)
  if (!user) throw new UnauthorizedError()
  if (!user.isActive) throw new AccountInactiveError()
  return user
}
