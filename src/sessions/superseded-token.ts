import type { AuthContext } from '../context'
import { InvalidTokenError } from '../core/errors'
import type { SessionRecord, UserRecord, UserStore } from '../store/auth-store'
import type { AccessTokenClaims } from './access-token'

/**
 * Rejects an access token from before a change of the credentials, for operations that add a way to log in. An access token stays valid for
 * minutes after a password change, a new factor or the verification of the address. The change may have logged an attacker out. The
 * attacker must not use the remaining minutes to regain access. The owner's client refreshes its token and sends the request again.
 *
 * `iat` counts whole seconds. So a token from the same second as the change can be older than the change. If the session's row is at least
 * as new as the change, in milliseconds, the token is newer than the change too. Otherwise the session was kept over the change, or the
 * store keeps no sessions, and the function rejects a token of that second. Exception: the methods of the token show that the change itself
 * created the token (`email` for the mailed link, `otp` for the code of the new factor). A change in the same second as the creation of the
 * account does not count. A server-side session is not affected, because a change of the credentials revokes it at once.
 * @throws InvalidTokenError
 */
export function refuseSupersededToken(
  ctx: AuthContext,
  { claims, session }: { claims: AccessTokenClaims; session: Pick<SessionRecord, 'kind' | 'createdAt'> | null },
  user: UserRecord,
): void {
  if (session?.kind !== 'session' && isSuperseded(ctx, claims, user, session)) throw new InvalidTokenError()
}

interface SupersededContext {
  readonly store: { readonly users: Pick<UserStore, 'fields'> }
}

/**
 * Returns true if the token is older than the last change of the credentials.
 * @param session the session of the request; null if the store keeps no sessions
 */
export function isSuperseded(
  { store }: SupersededContext,
  { iat, amr }: AccessTokenClaims,
  user: UserRecord,
  session: Pick<SessionRecord, 'createdAt'> | null = null,
): boolean {
  // If the table has no column for the time of the password change, the time of the last change of the row is used instead.
  const passwordChange = store.users.fields.has('passwordSetAt') ? user.passwordSetAt : user.updatedAt
  const byLink = amr.includes('email')
  const isOlder = (change: Date | null, cameOfIt: boolean) => {
    if (change === null || secondOf(change) <= secondOf(user.createdAt)) return false // a host's column can store only whole seconds
    if (session && beganAfter(session, change)) return iat < secondOf(change) - (isWhole(change) ? 1 : 0)
    return cameOfIt ? iat < secondOf(change) : iat <= secondOf(change)
  }
  return isOlder(passwordChange, byLink) || isOlder(user.emailVerifiedAt, byLink) || isOlder(user.totpEnabledAt, amr.includes('otp'))
}

/**
 * Returns true if the session began at the change or later. A column of whole seconds can round the change up to the next second. Then a
 * session that began less than a second before counts as later, because a login after the change must not be refused.
 */
function beganAfter({ createdAt }: Pick<SessionRecord, 'createdAt'>, change: Date): boolean {
  const [began, changed] = [createdAt.getTime(), change.getTime()]
  return began >= changed || (isWhole(change) && began > changed - 1_000)
}

function secondOf(instant: Date): number {
  return Math.floor(instant.getTime() / 1000)
}

function isWhole(instant: Date): boolean {
  return instant.getTime() % 1000 === 0
}
