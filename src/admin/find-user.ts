import type { AuthContext } from '../context'
import { type AdminUser, toAdminUser } from './admin-user'

/** Returns the account, or null if there is none with this id. */
export async function findUser(ctx: AuthContext, userId: string): Promise<AdminUser | null> {
  const user = await ctx.store.users.find(userId)
  return user && toAdminUser(user)
}
