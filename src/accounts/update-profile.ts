import { type AuthContext, transaction } from '../context'
import { AccountInactiveError, UnauthorizedError } from '../core/errors'
import { findActiveUser } from '../sessions/reauthentication/find-active-user'
import { holdSession } from '../sessions/reauthentication/fresh-session'
import type { HostFields, SessionRecord, UserRecord } from '../store/auth-store'
import { type PublicUser, toPublicUser } from '../store/public-user'
import { requireName } from './profile/require-name'
import { validateFields } from './profile/validate-fields'

export interface ProfileUpdate {
  userId: string
  /** At most 120 characters. An empty name is stored as null. Left out: unchanged. */
  name?: string | null | undefined
  /** The fields to change. A `readOnly` field cannot be changed. */
  fields?: HostFields | undefined
  /** The session of the request. If the session ends meanwhile, the call fails. */
  session?: Pick<SessionRecord, 'id' | 'userId'> | null | undefined
}

/**
 * Changes the name and the host's writable fields of an account.
 * @throws UnauthorizedError (no such user), AccountInactiveError, InvalidTokenError (the session has ended)
 * @throws ValidationError for a name that is too long, a field that cannot be written, or a value that `signup.schema` rejects
 */
export async function updateProfile(ctx: AuthContext, { userId, name, fields = {}, session }: ProfileUpdate): Promise<PublicUser> {
  const newName = name === undefined ? {} : { name: requireName(name) }
  // The host's schema may be slow, so the function calls the schema before the transaction.
  const accepted = await validateFields(ctx, await findActiveUser(ctx, userId), fields)
  const changes = { ...newName, ...(Object.keys(accepted).length > 0 && { fields: accepted }) }
  return transaction(ctx, async (ctx) => {
    const user = await lockActive(ctx, userId)
    await holdSession(ctx, session)
    if (Object.keys(changes).length === 0) return toPublicUser(user)
    await ctx.store.users.update(userId, { ...changes, updatedAt: ctx.now() })
    return toPublicUser(await lockActive(ctx, userId)) // the database can change a value when it stores the value
  })
}

async function lockActive(ctx: AuthContext, userId: string): Promise<UserRecord> {
  const user = await ctx.store.users.lock(userId)
  if (!user) throw new UnauthorizedError()
  if (!user.isActive) throw new AccountInactiveError()
  return user
}
