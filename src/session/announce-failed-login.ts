import type { AuthContext } from '../context'
import { eventDigest } from '../events'

/** What is known of a login that failed; filled in while the login runs, so that it is known wherever the login ends. */
export interface LoginAttempt {
  /** The account, as soon as one is found. */
  userId: string | null
  /** The email address that was typed, or that the provider named. */
  email: string | null
  /** `clientKey(req.ip)`; null: called without HTTP. */
  readonly client: string | null
}

export function newLoginAttempt(client: string | null, email: string | null = null): LoginAttempt {
  return { userId: null, email, client }
}

/** Tells observers of a login that opened no session. `reason` is the code of the refusal. */
export function announceFailedLogin(
  ctx: AuthContext,
  { userId, email, client }: LoginAttempt,
  refusal: { reason: string; provider?: string },
): void {
  const addressDigest = email === null ? null : eventDigest(ctx.keys, 'address', email)
  ctx.events.emit('login.failed', { ...refusal, userId, addressDigest, clientKey: client })
}
