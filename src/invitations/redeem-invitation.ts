import { type AuthContext, transaction } from '../context'
import { InvitationRequiredError, NotFoundError } from '../core/errors'
import type { UserRecord } from '../store/auth-store'
import { acceptInvitation } from './accept-invitation'
import { findByToken, requireInvitations } from './invitation'

/**
 * Uses an invitation for an account that is active already. It verifies no address. A second call by the same account changes nothing.
 * @throws InvitationRequiredError; NotFoundError for an unknown account, or one that is not active; what the host's hook throws
 */
export async function redeemInvitation(ctx: AuthContext, userId: string, token: string): Promise<void> {
  const invitation = await findByToken(ctx, token)
  if (!invitation) throw new InvitationRequiredError()
  await transaction(ctx, async (ctx) => {
    const user = await ctx.store.users.lock(userId) // orders two calls of one account
    if (!user?.isActive) throw new NotFoundError()
    if (await requireInvitations(ctx).invitationUses.isUsedBy(invitation.id, user.id)) return
    if (invitation.email !== null && !(invitation.email === user.email && isVerified(ctx, user))) throw new InvitationRequiredError()
    await acceptInvitation(ctx, user, invitation.id)
  })
}

function isVerified({ settings, store }: AuthContext, { emailVerifiedAt }: UserRecord): boolean {
  return store.users.fields.has('emailVerifiedAt') ? emailVerifiedAt !== null : settings.assumeEmailsProven
}
