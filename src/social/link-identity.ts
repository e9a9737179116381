import { type AuthContext, unitOfWork } from '../context'
import {
  AccountInactiveError,
  OAuthIdentityTakenError,
  OAuthProviderAlreadyLinkedError,
  ServiceUnavailableError,
  UnauthorizedError,
} from '../errors'
import type { Locale } from '../http/locale'
import { mailNotice } from '../mailbox/send-mail'
import type { OAuthUser } from '../providers/provider-client'
import { DuplicateRecordError, type IdentityRecord, type UserRecord } from '../store/auth-store'
import { acceptProfile } from './accept-profile'
import { identitiesOf, identityRecord } from './identities'

export interface LinkedIdentity {
  identity: IdentityRecord
  /** False: it was linked to this account before. */
  isNew: boolean
  /** As its row was when the link was made. */
  owner: UserRecord
}

/** Throws unless the account, as its locked row shows it, may still be linked; `ctx` is the unit's. */
export type LinkCheck = (ctx: AuthContext, user: UserRecord | null) => Promise<void> | void

const rounds = 4

/**
 * Links an external identity to an account whose owner asked for it. The email plays no part: neither is one needed, nor
 * does one of another account matter. An identity of another account is never moved.
 *
 * Decided under the user's row, like unlinking and every login; whoever loses to a racer looks again.
 * @throws OAuthIdentityTakenError, OAuthProviderAlreadyLinkedError, OAuthError (an unusable profile), and what `check`
 *   throws: UnauthorizedError (the account is gone), AccountInactiveError
 */
export async function linkIdentity(
  ctx: AuthContext,
  userId: string,
  given: OAuthUser,
  { check = (_ctx, user) => requireActive(user), locale }: { check?: LinkCheck; locale?: Locale | undefined } = {},
): Promise<LinkedIdentity> {
  const profile = acceptProfile(given)
  for (let round = 1; round <= rounds; round += 1) {
    const linked = await tryOnce(ctx, userId, profile, check)
    if (!linked) continue
    if (linked.isNew) announce(ctx, linked, locale)
    return linked
  }
  throw new ServiceUnavailableError()
}

function announce(ctx: AuthContext, { identity, owner }: LinkedIdentity, locale?: Locale): void {
  ctx.events.emit('identity.linked', { userId: owner.id, provider: identity.provider })
  mailNotice(ctx, owner, 'identity_linked', locale, identity.provider)
}

/** @throws UnauthorizedError (the account is gone), AccountInactiveError */
export function requireActive(user: UserRecord | null): asserts user is UserRecord {
  if (!user) throw new UnauthorizedError()
  if (!user.isActive) throw new AccountInactiveError()
}

async function tryOnce(ctx: AuthContext, userId: string, profile: OAuthUser, check: LinkCheck): Promise<LinkedIdentity | null> {
  try {
    return await unitOfWork(ctx, async (ctx) => {
      const owner = await ctx.store.users.lock(userId)
      await check(ctx, owner)
      if (!owner) throw new UnauthorizedError()
      return link(ctx, owner, profile)
    })
  } catch (error) {
    if (error instanceof DuplicateRecordError) return null
    throw error
  }
}

async function link(ctx: AuthContext, owner: UserRecord, profile: OAuthUser): Promise<LinkedIdentity> {
  const { provider, subject } = profile
  const known = await identitiesOf(ctx).findWithUser(provider, subject)
  if (known && known.user.id !== owner.id) throw new OAuthIdentityTakenError({ details: { provider } })
  if (known) return { identity: known.identity, isNew: false, owner }
  const own = await identitiesOf(ctx).listForUser(owner.id)
  if (own.some((identity) => identity.provider === provider)) throw new OAuthProviderAlreadyLinkedError({ details: { provider } })
  return { identity: await identitiesOf(ctx).insert(identityRecord(owner.id, profile, ctx.now())), isNew: true, owner }
}
