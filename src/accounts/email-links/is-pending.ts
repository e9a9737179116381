import type { AuthContext } from '../../context'
import type { UserRecord } from '../../store/auth-store'

/**
 * Returns true for an account that waits for its first activation. Returns false for an active or deactivated account. If the users table
 * has no `activatedAt`, a redeemed activation link or a login shows an earlier activation.
 */
export async function isPending({ store }: Pick<AuthContext, 'store'>, user: UserRecord): Promise<boolean> {
  if (user.isActive) return false
  // An account with a login was active before, even if imported rows do not say when.
  if (user.activatedAt !== null || user.lastLoginAt !== null) return false
  return store.users.fields.has('activatedAt') || !(await store.userTokens.wasConsumed(user.id, 'ACTIVATION'))
}
