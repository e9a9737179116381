import { AccountInactiveError, type AppError, InvalidTokenError } from '../../core/errors'
import { isAlive } from '../../sessions/find-session'
import type { SessionWithUser } from '../../store/auth-store'

export interface WatchedSession {
  readonly id: string
  readonly userId: string
}

/** Returns the error of `requireLiveSession`. Null: the session is live, and its account active. */
export function refusalOf(found: SessionWithUser | null, { id, userId }: WatchedSession, now: Date): AppError | null {
  // createGuards() uses the host's store directly, so its result is checked.
  const isAsked = found?.session?.id === id && found.session.userId === userId && found.user?.id === userId
  if (isAsked && !found.user.isActive) return new AccountInactiveError()
  return isAsked && isAlive(found.session, now) ? null : new InvalidTokenError({ reason: 'session_over' })
}
