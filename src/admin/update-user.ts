import { type AuthContext, unitOfWork } from '../context'
import { ConflictError, ValidationError } from '../errors'
import { type AdminUser, toAdminUser } from './admin-user'
import { type ActingAdmin, lockTarget } from './lock-target'

export interface UserUpdate {
  /** At most 120 characters; an empty one is none. */
  name?: string | null | undefined
  isAdmin?: boolean | undefined
}

/**
 * Changes what an administrator may change of an account; the rest is its owner's.
 * @throws NotFoundError, ConflictError (`lockTarget`), ForbiddenError, ValidationError
 */
export async function updateUser(
  ctx: AuthContext,
  userId: string,
  { name, isAdmin }: UserUpdate,
  acting?: ActingAdmin,
): Promise<AdminUser> {
  if (isAdmin !== undefined && typeof isAdmin !== 'boolean') throw new TypeError('isAdmin must be true or false.')
  if (typeof name === 'string' && name.length > 120)
    throw new ValidationError({ details: { errors: [{ path: 'name', rule: 'string.max' }] } })
  const changes = { ...(name !== undefined && { name: name || null }), ...(isAdmin !== undefined && { isAdmin }) }
  return unitOfWork(ctx, async (ctx) => {
    const user = await lockTarget(ctx, userId, acting, { takesPower: isAdmin === false })
    // Somebody who waits to prove the address, or was put out, is no one to give power to.
    if (isAdmin === true && acting && !user.isActive) throw new ConflictError()
    if (Object.keys(changes).length === 0) return toAdminUser(user)
    await ctx.store.users.update(userId, { ...changes, updatedAt: ctx.now() })
    return toAdminUser((await ctx.store.users.lock(userId)) ?? user) // as the table has it now: it may lack a column
  })
}
