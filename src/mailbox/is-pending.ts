import type { AuthContext } from '../context'
import type { UserRecord } from '../store/auth-store'

/**
 * True for an account that waits for its first activation; false for an active or a deactivated one. If the users table has no
 * `activatedAt`, an earlier activation shows by a redeemed link or a login.
 */
export async function isPending({ store }: Pick<AuthContext, 'store'>, user: UserRecord): Promise<boolean> {
  if (user.isActive) return false
  // An account with a login was active once, even if imported rows do not say when.
  if (user.activatedAt !== null || user.lastLoginAt !== null) return false
  return store.users.fields.has('activatedAt') || !(await store.userTokens.wasConsumed(user.id, 'ACTIVATION'))
}
