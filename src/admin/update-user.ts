import { type AuthContext, transaction } from '../context'
import { ConflictError, ValidationError } from '../core/errors'
import { takeChange } from '../rate-limits/take-change'
import type { UserChanges, UserRecord } from '../store/auth-store'
import { type AdminUser, toAdminUser } from './admin-user'
import { type AdminChange, announceAdmin } from './announce-admin'
import { type ActingAdmin, lockTarget } from './lock-target'

export interface UserUpdate {
  /** At most 120 characters. An empty name is stored as null. */
  name?: string | null | undefined
  isAdmin?: boolean | undefined
}

/**
 * Changes the name or the administrator rights of an account. Only the account's owner can change the other fields. An administrator can
 * change administrator rights at most ten times a day. The notices about these changes have no rate limit. Only the limit of the changes
 * limits the number of notices.
 * @throws NotFoundError, ConflictError (`lockTarget`), ForbiddenError, ValidationError, TooManyRequestsError
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
  const taken = isAdmin === undefined || !acting ? null : await takeChange(ctx, { id: acting.by })
  try {
    const { updated, change } = await transaction(ctx, (ctx) => update(ctx, userId, changes, acting))
    if (change) announceAdmin(ctx, change, acting?.by ?? null)
    else await taken?.giveBack()
    return toAdminUser(updated)
  } catch (error) {
    await taken?.giveBack()
    throw error
  }
}

async function update(
  ctx: AuthContext,
  userId: string,
  changes: Pick<UserChanges, 'name' | 'isAdmin'>,
  acting?: ActingAdmin,
): Promise<{ updated: UserRecord; change: AdminChange | null }> {
  const { isAdmin } = changes
  const user = await lockTarget(ctx, userId, acting, { takesPower: isAdmin === false })
  // An administrator cannot make an inactive account an administrator. The host itself can.
  if (isAdmin === true && acting && !user.isActive) throw new ConflictError()
  if (Object.keys(changes).length === 0) return { updated: user, change: null }
  await ctx.store.users.update(userId, { ...changes, updatedAt: ctx.now() })
  const updated = (await ctx.store.users.lock(userId)) ?? user // the row is read again, because the table may have no column for a change
  if (updated.isAdmin === user.isAdmin) return { updated, change: null }
  return { updated, change: { user: updated, isAdmin: updated.isAdmin, admins: await ctx.store.users.lockAdmins() } }
}
