import type { AuthContext } from '../context'
import { type AdminUser, toAdminUser } from './admin-user'

/** Returns the account. Returns null if no account has this id. */
export async function findUser(ctx: AuthContext, userId: string): Promise<AdminUser | null> {
  const user = await ctx.store.users.find(userId)
  return user && toAdminUser(user)
}
