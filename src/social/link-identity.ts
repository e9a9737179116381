import { announceChange, type LeaveUndoPoint } from '../accounts/undo/announce-change'
import { type AuthContext, transaction } from '../context'
import {
  AccountInactiveError,
  OAuthIdentityTakenError,
  OAuthProviderAlreadyLinkedError,
  ServiceUnavailableError,
  UnauthorizedError,
} from '../core/errors'
import type { Locale } from '../http/locale'
import type { OAuthUser } from '../providers/provider-client'
import type { Irreversibility } from '../sessions/reauthentication/irreversible-change'
import { DuplicateRecordError, type IdentityRecord, type UserRecord } from '../store/auth-store'
import { acceptProfile } from './accept-profile'
import { identitiesOf, identityRecord } from './identities'

export interface LinkedIdentity {
  identity: IdentityRecord
  /** False: the identity was already linked to this account. */
  isNew: boolean
  /** The account's row at the time of the link. */
  owner: UserRecord
}

/** Throws if the account must not be linked. `user` is the locked row of the account, and `ctx` belongs to the transaction. */
export type LinkCheck = (ctx: AuthContext, user: UserRecord | null) => Promise<void> | void

export interface LinkOptions {
  check?: LinkCheck
  /** Whether an older factor confirmed the change (`Irreversibility`). If it did, the owner cannot undo the change with the mailed notice. */
  isFinal?: Irreversibility | undefined
  /** The language of the notice. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

const rounds = 4

/**
 * Links an external identity to an account, at the request of the account's owner. The email does not matter: it can be missing, or belong
 * to another account. The function never moves an identity from another account.
 *
 * Decides under the lock of the user's row, like unlinking and every login. If a parallel request causes a conflict, the function tries
 * again.
 * @throws OAuthIdentityTakenError, OAuthProviderAlreadyLinkedError, OAuthError (an unusable profile), ServiceUnavailableError (too many
 * conflicts)
 * @throws what `check` throws; by default UnauthorizedError (the account is gone), AccountInactiveError
 * @throws UnauthorizedError if the identity is linked to an account that was deleted
 */
export async function linkIdentity(
  ctx: AuthContext,
  userId: string,
  given: OAuthUser,
  { check = (_ctx, user) => requireActive(user), isFinal, locale }: LinkOptions = {},
): Promise<LinkedIdentity> {
  const profile = acceptProfile(given)
  const { provider } = profile
  const linked = await announceChange(ctx, userId, { topic: 'identity_linked', locale, provider }, async (leaveUndoPoint) => {
    for (let round = 1; round <= rounds; round += 1) {
      const leave: LeaveUndoPoint = (ctx, { user }) => leaveUndoPoint(ctx, { user, isFinal })
      const linked = await tryOnce(ctx, userId, profile, check, leave)
      if (linked) return linked
    }
    throw new ServiceUnavailableError()
  })
  if (linked.isNew) ctx.events.emit('identity.linked', { userId, provider })
  return linked
}

/** Requires an active account. @throws UnauthorizedError (the account is gone), AccountInactiveError */
export function requireActive(user: UserRecord | null): asserts user is UserRecord {
  if (!user) throw new UnauthorizedError()
  if (!user.isActive) throw new AccountInactiveError()
}

async function tryOnce(
  ctx: AuthContext,
  userId: string,
  profile: OAuthUser,
  check: LinkCheck,
  leaveUndoPoint: LeaveUndoPoint,
): Promise<LinkedIdentity | null> {
  try {
    return await transaction(ctx, async (ctx) => {
      const owner = await ctx.store.users.lock(userId)
      await check(ctx, owner)
      if (!owner) throw new UnauthorizedError()
      return link(ctx, owner, profile, leaveUndoPoint)
    })
  } catch (error) {
    if (error instanceof DuplicateRecordError) return null
    throw error
  }
}

async function link(ctx: AuthContext, owner: UserRecord, profile: OAuthUser, leaveUndoPoint: LeaveUndoPoint): Promise<LinkedIdentity> {
  const { provider, subject } = profile
  const known = await identitiesOf(ctx).findWithUser(provider, subject)
  if (known && !known.user) throw new UnauthorizedError()
  if (known?.user && known.user.id !== owner.id) throw new OAuthIdentityTakenError({ details: { provider } })
  if (known) return { identity: known.identity, isNew: false, owner }
  const own = await identitiesOf(ctx).listForUser(owner.id)
  if (own.some((identity) => identity.provider === provider)) throw new OAuthProviderAlreadyLinkedError({ details: { provider } })
  await leaveUndoPoint(ctx, { user: owner })
  return { identity: await identitiesOf(ctx).insert(identityRecord(owner.id, profile, ctx.now())), isNew: true, owner }
}
