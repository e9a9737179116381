import type { AuthContext } from '../context'
import { InvitationRequiredError } from '../core/errors'
import type { UserRecord } from '../store/auth-store'
import { transactionOf } from '../store/knex/knex-store'
import { requireInvitations } from './invitation'

/**
 * Uses an invitation for an account, and calls the host's hook. Call it inside the transaction that writes the account, after it was written.
 * One guarded statement decides, so of several accounts at once only as many get in as there are uses.
 * @param user as written
 * @throws InvitationRequiredError if the invitation is used up, revoked, expired or for another address; what the hook throws
 */
export async function acceptInvitation(ctx: AuthContext, user: UserRecord, invitationId: string): Promise<void> {
  const { invitations, invitationUses } = requireInvitations(ctx)
  const now = ctx.now()
  const invitation = await invitations.consume(invitationId, now)
  if (!invitation || (invitation.email !== null && invitation.email !== user.email)) throw new InvitationRequiredError()
  await invitationUses.insert({ invitationId, userId: user.id, createdAt: now })
  const data: unknown = invitation.data === null ? null : JSON.parse(invitation.data)
  await ctx.onInvitationAccepted?.(user, data, { trx: transactionOf(ctx.store) })
  ctx.events.emit('invitation.accepted', { invitationId, userId: user.id })
}
