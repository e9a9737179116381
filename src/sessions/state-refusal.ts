import type { AuthContext } from '../context'
import { type AppError, ApprovalPendingError, DeletionPendingError } from '../core/errors'
import type { UserRecord } from '../store/auth-store'
import { isLeaving, isWaiting } from './account-state'
import { signRestoreToken } from './restore-token'

/** Why a right credential opens nothing, for an account that is not active. Null: it is open, or it has no way in at all. */
export function stateRefusal(ctx: AuthContext, user: UserRecord): AppError | null {
  if (!isLeaving(user)) return isWaiting(user) ? new ApprovalPendingError() : null
  if (ctx.settings.accountDeletion === 'off') return new DeletionPendingError() // no purge deletes it, and no route brings it back
  return new DeletionPendingError({
    details: { deletes_at: deletesAt(ctx, user).toISOString(), restore_token: signRestoreToken(ctx, user) },
  })
}

/** @param user a leaving account */
export function deletesAt({ settings, now }: Pick<AuthContext, 'settings' | 'now'>, { deletionRequestedAt }: UserRecord): Date {
  return new Date((deletionRequestedAt ?? now()).getTime() + settings.accountDeletionDays * 86_400_000)
}
