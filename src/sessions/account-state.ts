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

/** What a route that logs in refuses by the account's state. */
export function stateRefusals({ settings }: Pick<AuthContext, 'settings'>): (typeof ApprovalPendingError | typeof DeletionPendingError)[] {
  return [
    ...(settings.signupMode === 'approve' ? [ApprovalPendingError] : []),
    ...(settings.accountDeletion === 'soft' ? [DeletionPendingError] : []),
  ]
}
