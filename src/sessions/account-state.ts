import type { AuthContext } from '../context'
import { ApprovalPendingError, DeletionPendingError } from '../core/errors'
import type { UserRecord } from '../store/auth-store'

/** A login may be proved: it opens a session, or its owner hears why not. */
export function mayProve(user: UserRecord): boolean {
  return user.isActive || isRefusedByState(user)
}

/** Not active, and its owner may hear why. */
export function isRefusedByState(user: UserRecord): boolean {
  return isWaiting(user) || isLeaving(user)
}

/** For an administrator (`signupMode: 'approve'`). */
export function isWaiting({ isActive, approvalRequestedAt }: Pick<UserRecord, 'isActive' | 'approvalRequestedAt'>): boolean {
  return !isActive && Boolean(approvalRequestedAt)
}

/** For its deletion (`accountDeletion: 'soft'`). */
export function isLeaving({ isActive, deletionRequestedAt }: Pick<UserRecord, 'isActive' | 'deletionRequestedAt'>): boolean {
  return !isActive && Boolean(deletionRequestedAt)
}

/** Also after a change from `soft` to `immediate`: the accounts that wait by then have their way back. */
export function canBeLeaving({ settings, store }: Pick<AuthContext, 'settings' | 'store'>): boolean {
  return settings.accountDeletion !== 'off' && store.users.fields.has('deletionRequestedAt')
}

/** What a route that logs in refuses by the account's state. */
export function stateRefusals(ctx: Pick<AuthContext, 'settings' | 'store'>): (typeof ApprovalPendingError | typeof DeletionPendingError)[] {
  return [...(ctx.settings.signupMode === 'approve' ? [ApprovalPendingError] : []), ...(canBeLeaving(ctx) ? [DeletionPendingError] : [])]
}
