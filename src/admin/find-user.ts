import type { AuthContext } from '../context'
import { type AdminUser, toAdminUser } from './admin-user'

/** Null: there is no such account. */
export async function findUser(ctx: AuthContext, userId: string): Promise<AdminUser | null> {
  const user = await ctx.store.users.find(userId)
  return user && toAdminUser(user)
}
