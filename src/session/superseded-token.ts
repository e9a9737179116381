import type { AuthContext } from '../context'
import { InvalidTokenError } from '../errors'
import type { SessionRecord, UserRecord, UserStore } from '../store/auth-store'
import type { AccessTokenClaims } from './access-token'

/**
 * Rejects an access token from before a change of the credentials, for operations that add a way to log in. An access token stays valid for
 * minutes after a password change, a new factor or the verification of the address. The change may have logged an attacker out. The
 * attacker must not use the remaining minutes to regain access. The owner's client refreshes its token and sends the request again.
 *
 * `iat` counts whole seconds. So a token from the same second as the change can be older than the change. The function also rejects such a
 * token. Exception: the methods of the token show that the change itself created the token (`email` for the mailed link, `otp` for the code
 * of the new factor). A change in the same second as the creation of the account does not count. A server-side session is not affected,
 * because a change of the credentials revokes it at once.
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

/** Returns true if the token is older than the last change of the credentials. */
export function isSuperseded({ store }: SupersededContext, { iat, amr }: AccessTokenClaims, user: UserRecord): boolean {
  // If the table has no column for the time of the password change, the time of the last change of the row is used instead.
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
  if (second <= Math.floor(createdAt.getTime() / 1000)) return false // a host's column can store only whole seconds
  return cameOfIt ? iat < second : iat <= second
}
