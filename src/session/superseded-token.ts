import type { AuthContext } from '../context'
import { InvalidTokenError } from '../errors'
import type { SessionRecord, UserRecord, UserStore } from '../store/auth-store'
import type { AccessTokenClaims } from './access-token'

/**
 * Rejects an access token from before a change of the credentials, for operations that add a way to log in. An access token stays valid for
 * minutes after a password change, a new factor or the verification of the address. The change may have logged an attacker out. The
 * attacker must not use the remaining minutes to regain access. The owner's client refreshes its token and sends the request again.
 *
 * `iat` counts whole seconds. So a token from the second of the change may be older than the change. The function also rejects this token,
 * unless its methods show that the change created the token. The methods are the mailed link (`email`) and the new factor's code (`otp`). A
 * change in the second of the account's creation does not count. A server-side session is not affected, because a change of the credentials
 * revokes it at once.
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
  // If the table has no column for the time of the password change, any change of the row counts.
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
  if (second <= Math.floor(createdAt.getTime() / 1000)) return false // a host's column may store whole seconds
  return cameOfIt ? iat < second : iat <= second
}
