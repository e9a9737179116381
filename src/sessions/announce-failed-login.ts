import type { AuthContext } from '../context'
import { eventDigest } from '../core/events'

/** What is known of a failed login. The login sets the fields while it runs, because it can fail at any step. */
export interface LoginAttempt {
  /** The account, once the login has found it. */
  userId: string | null
  /** The email address that the person typed, or that the provider returned. */
  email: string | null
  /** The key of the client: `clientOf(req)`. Null: the login was called without HTTP, or the address cannot be read. */
  readonly client: string | null
}

export function newLoginAttempt(client: string | null, email: string | null = null): LoginAttempt {
  return { userId: null, email, client }
}

/** Emits `login.failed`. `reason` is the code of the error. */
export function announceFailedLogin(
  ctx: AuthContext,
  { userId, email, client }: LoginAttempt,
  refusal: { reason: string; provider?: string },
): void {
  const addressDigest = email === null ? null : eventDigest(ctx.keys, 'address', email)
  ctx.events.emit('login.failed', { ...refusal, userId, addressDigest, clientKey: client })
}
