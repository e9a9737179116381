import { type AuthContext, unitOfWork } from '../context'
import { AccountInactiveError, UnauthorizedError } from '../errors'
import { requireName } from '../profile/require-name'
import { validateFields } from '../profile/validate-fields'
import { findActiveUser } from '../step-up/find-active-user'
import type { HostFields, UserRecord } from '../store/auth-store'
import { type PublicUser, toPublicUser } from '../store/public-user'

export interface ProfileUpdate {
  userId: string
  /** At most 120 characters; an empty name is stored as none. Left out: unchanged. */
  name?: string | null | undefined
  /** Only the given fields change. A field must not be `readOnly`. */
  fields?: HostFields | undefined
}

/**
 * Changes the profile of an account: the name, and the writable fields of the host.
 * @throws UnauthorizedError (no such user), AccountInactiveError
 * @throws ValidationError for a name that is too long, a field that cannot be written, and a value that `signup.schema` rejects
 */
export async function updateProfile(ctx: AuthContext, { userId, name, fields = {} }: ProfileUpdate): Promise<PublicUser> {
  const newName = name === undefined ? {} : { name: requireName(name) }
  // The host's schema may be slow, so it is called before the transaction.
  const accepted = await validateFields(ctx, await findActiveUser(ctx, userId), fields)
  const changes = { ...newName, ...(Object.keys(accepted).length > 0 && { fields: accepted }) }
  return unitOfWork(ctx, async (ctx) => {
    const user = await lockActive(ctx, userId)
    if (Object.keys(changes).length === 0) return toPublicUser(user)
    await ctx.store.users.update(userId, { ...changes, updatedAt: ctx.now() })
    return toPublicUser(await lockActive(ctx, userId)) // as the table has it now
  })
}

async function lockActive(ctx: AuthContext, userId: string): Promise<UserRecord> {
  const user = await ctx.store.users.lock(userId)
  if (!user) throw new UnauthorizedError()
  if (!user.isActive) throw new AccountInactiveError()
  return user
}
