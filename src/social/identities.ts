import { announceChange } from '../accounts/undo/announce-change'
import { type AuthContext, transaction } from '../context'
import {
  AccountInactiveError,
  ConfigurationError,
  LastLoginMethodError,
  OAuthAccountNotLinkedError,
  UnauthorizedError,
} from '../core/errors'
import { instant, shape, string, stringOrNull } from '../http/description'
import type { Locale } from '../http/locale'
import type { OAuthUser } from '../providers/provider-client'
import { announceEnded, endSessionsOpenedBy } from '../sessions/log-out'
import { holdSession } from '../sessions/reauthentication/fresh-session'
import type { Irreversibility } from '../sessions/reauthentication/irreversible-change'
import { hasOtherLoginMethod } from '../sessions/reauthentication/methods'
import type { IdentityRecord, IdentityStore, NewIdentity, SessionRecord, UserRecord } from '../store/auth-store'

/** Oldest first. */
export function listIdentities(ctx: AuthContext, userId: string): Promise<IdentityRecord[]> {
  return identitiesOf(ctx).listForUser(userId)
}

/**
 * Locks the user's row first, so no login by the removed identity can open a session after the commit. Revokes the other sessions that the
 * provider opened.
 * @throws UnauthorizedError, AccountInactiveError, OAuthAccountNotLinkedError; LastLoginMethodError under `oauthKeepLastLoginMethod`
 */
export async function unlinkIdentity(
  ctx: AuthContext,
  userId: string,
  provider: string,
  { locale, session, isFinal }: { locale?: Locale | undefined; session?: SessionRecord | null; isFinal?: Irreversibility } = {},
): Promise<void> {
  const ended = await announceChange(ctx, userId, { topic: 'identity_unlinked', locale, provider }, (leaveUndoPoint) =>
    transaction(ctx, async (ctx) => {
      const user = await ctx.store.users.lock(userId)
      if (!user) throw new UnauthorizedError()
      if (!user.isActive) throw new AccountInactiveError()
      const held = await holdSession(ctx, session)
      await leaveUndoPoint(ctx, { user, isFinal })
      if ((await remove(ctx, user, provider)) === 0) throw new OAuthAccountNotLinkedError({ details: { provider } })
      ctx.events.emit('identity.unlinked', { userId, provider })
      return endSessionsOpenedBy(ctx, userId, { provider }, held)
    }),
  )
  announceEnded(ctx, userId, ended)
}

/** Compares the key here: a database collation can treat two spellings as equal, and the last-login rule compares exact keys. */
async function remove(ctx: AuthContext, user: UserRecord, provider: string): Promise<number> {
  const linked = await identitiesOf(ctx).listForUser(user.id)
  if (!linked.some((identity) => identity.provider === provider)) return 0
  if (ctx.settings.oauthKeepLastLoginMethod && !(await hasOtherLoginMethod(ctx, user, 'identity')))
    throw new LastLoginMethodError({ details: { provider } })
  return identitiesOf(ctx).deleteForUser(user.id, provider)
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

export const identitySchema = shape('Identity', {
  provider: string,
  subject: string,
  email: stringOrNull,
  email_verified: { type: ['boolean', 'null'] },
  name: stringOrNull,
  picture: stringOrNull,
  created_at: instant,
  last_login_at: instant,
})

/** Copies each field by its name, so the JSON never contains another column of the row. */
export function identityBody(identity: IdentityRecord): object {
  return {
    provider: identity.provider,
    subject: identity.subject,
    email: identity.email,
    email_verified: identity.emailVerified,
    name: identity.name,
    picture: identity.picture,
    created_at: identity.createdAt.toISOString(),
    last_login_at: identity.lastLoginAt.toISOString(),
  }
}
