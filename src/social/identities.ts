import { type AuthContext, unitOfWork } from '../context'
import { AccountInactiveError, ConfigurationError, LastLoginMethodError, OAuthAccountNotLinkedError, UnauthorizedError } from '../errors'
import type { OAuthUser } from '../providers/provider-client'
import type { IdentityRecord, IdentityStore, NewIdentity } from '../store/auth-store'

/** The account's linked identities, oldest first. */
export function listIdentities(ctx: AuthContext, userId: string): Promise<IdentityRecord[]> {
  return identitiesOf(ctx).listForUser(userId)
}

/**
 * Removes the caller's identity of one provider. The user's row is locked first, as by every login: no session of a
 * removed link begins after this has committed.
 * @throws UnauthorizedError (user gone), AccountInactiveError, OAuthAccountNotLinkedError; LastLoginMethodError under `oauthKeepLastLoginMethod`
 */
export async function unlinkIdentity(ctx: AuthContext, userId: string, provider: string): Promise<void> {
  const removed = await unitOfWork(ctx, async (ctx) => {
    const user = await ctx.store.users.lock(userId)
    if (!user) throw new UnauthorizedError()
    if (!user.isActive) throw new AccountInactiveError()
    if (ctx.settings.oauthKeepLastLoginMethod && user.passwordSetAt === null) await keepOneMethod(ctx, userId, provider)
    return identitiesOf(ctx).deleteForUser(userId, provider)
  })
  if (removed === 0) throw new OAuthAccountNotLinkedError({ details: { provider } })
  ctx.events.emit('identity.unlinked', { userId, provider })
}

/** A generated password lets nobody in: then the last identity is the only door. */
async function keepOneMethod(ctx: AuthContext, userId: string, provider: string): Promise<void> {
  const linked = await identitiesOf(ctx).listForUser(userId)
  if (linked.length === 1 && linked[0]?.provider === provider) throw new LastLoginMethodError({ details: { provider } })
}

export function identityRecord(userId: string, profile: OAuthUser, now: Date): NewIdentity {
  const { provider, subject, email, emailVerified, name, picture } = profile
  return { userId, provider, subject, email, emailVerified, name, picture, createdAt: now, lastLoginAt: now }
}

export function identitiesOf(ctx: AuthContext): IdentityStore {
  const { identities } = ctx.store
  if (!identities) throw new ConfigurationError('The store has no identities; wire `identities` in your AuthStore.')
  return identities
}
