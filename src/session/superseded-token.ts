import type { AuthContext } from '../context'
import { InvalidTokenError } from '../errors'
import type { SessionRecord, UserRecord, UserStore } from '../store/auth-store'
import type { AccessTokenClaims } from './access-token'

/**
 * For operations that add a way to log in to an account. An access token stays valid for minutes after a password change, a new factor
 * or the verification of the address. An attacker who was logged out by one of these must not use that time to regain access. The
 * owner's client refreshes and sends the request again.
 *
 * `iat` counts whole seconds: a token of the very second of the change may be older than it, and is refused too, unless
 * its methods say that it came of it: of the mailed link (`email`) or the new factor's code (`otp`). What came with the
 * account itself put nobody out. A server-side session has no such minutes: what puts somebody out ends it at once.
 * @throws InvalidTokenError
 */
export function refuseSupersededToken(
  ctx: AuthContext,
  { claims, session }: { claims: AccessTokenClaims; session: Pick<SessionRecord, 'kind'> | null },
  user: UserRecord,
): void {
  if (session?.kind !== 'session' && isSuperseded(ctx, claims, user)) throw new InvalidTokenError()
}

interface SupersededContext {
  readonly store: { readonly users: Pick<UserStore, 'fields'> }
}

/** True for a token that is older than the last change of what lets people in. */
export function isSuperseded({ store }: SupersededContext, { iat, amr }: AccessTokenClaims, user: UserRecord): boolean {
  // A table that does not say when the password changed says when anything did.
  const passwordChange = store.users.fields.has('passwordSetAt') ? user.passwordSetAt : user.updatedAt
  const byLink = amr.includes('email')
  return (
    isOlder(iat, passwordChange, user, byLink) ||
    isOlder(iat, user.emailVerifiedAt, user, byLink) ||
    isOlder(iat, user.totpEnabledAt, user, amr.includes('otp'))
  )
}

function isOlder(iat: number, change: Date | null, { createdAt }: UserRecord, cameOfIt: boolean): boolean {
  if (change === null) return false
  const second = Math.floor(change.getTime() / 1000)
  if (second <= Math.floor(createdAt.getTime() / 1000)) return false // a column of the host's may keep whole seconds
  return cameOfIt ? iat < second : iat <= second
}
