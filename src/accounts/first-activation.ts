import type { AuthContext } from '../context'
import { acceptInvitation } from '../invitations/accept-invitation'
import type { UserChanges, UserRecord } from '../store/auth-store'

// Every account that a person creates becomes active here, once: `firstActivation` says what is written, and `completeFirstActivation`
// runs in the same transaction after it was written.

/** @param _invitation the id of the invitation that the account uses. Null: none */
export function firstActivation(ctx: Pick<AuthContext, 'now'>, _invitation: string | null): { isActive: boolean; activatedAt: Date } {
  return { isActive: true, activatedAt: ctx.now() } satisfies UserChanges
}

/** @param user as written @throws InvitationRequiredError, and what the host's hook throws */
export async function completeFirstActivation(ctx: AuthContext, user: UserRecord, invitation: string | null): Promise<void> {
  if (invitation !== null && ctx.settings.invitationsEnabled) await acceptInvitation(ctx, user, invitation)
}
