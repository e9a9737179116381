import type { AuthContext } from '../context'
import { type AppError, ApprovalPendingError } from '../core/errors'
import type { UserRecord } from '../store/auth-store'

/** Why a right credential opens nothing, for an account that is not active. Null: it is open, or it has no way in at all. */
export function stateRefusal(user: UserRecord): AppError | null {
  return isWaiting(user) ? new ApprovalPendingError() : null
}

/** A login may be proved: it opens a session, or its owner hears why not. */
export function mayProve(user: UserRecord): boolean {
  return user.isActive || stateRefusal(user) !== null
}

/** For an administrator (`signupMode: 'approve'`). */
export function isWaiting({ isActive, approvalRequestedAt }: Pick<UserRecord, 'isActive' | 'approvalRequestedAt'>): boolean {
  return !isActive && Boolean(approvalRequestedAt)
}

/** What a route that logs in refuses by the account's state. */
export function stateRefusals({ settings }: Pick<AuthContext, 'settings'>): (typeof ApprovalPendingError)[] {
  return settings.signupMode === 'approve' ? [ApprovalPendingError] : []
}
