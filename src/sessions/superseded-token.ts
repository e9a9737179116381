import type { AuthContext } from '../context'
import { InvalidTokenError } from '../core/errors'
import type { SessionRecord, UserRecord, UserStore } from '../store/auth-store'
import type { AccessTokenClaims } from './access-token'

/**
 * An access token stays valid for minutes after a change of the credentials, which may have logged an attacker out. So operations that add
 * a way to log in reject a token from before the change. The owner's client refreshes and tries again. `iat` counts whole seconds: a token
 * of the change's second is rejected, unless the session's row is as new as the change in milliseconds, or the methods show that the change
 * made the token (`email` for the link, `otp` for the new factor). A change in the second of the account's creation does not count. A
 * server-side session is revoked by the change itself.
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

/** @param session null if the store keeps no sessions */
export function isSuperseded(
  { store }: SupersededContext,
  { iat, amr }: AccessTokenClaims,
  user: UserRecord,
  session: Pick<SessionRecord, 'createdAt'> | null = null,
): boolean {
  // Without a column for the time of the password change, the last change of the row counts.
  const passwordChange = store.users.fields.has('passwordSetAt') ? user.passwordSetAt : user.updatedAt
  const byLink = amr.includes('email')
  const isOlder = (change: Date | null, cameOfIt: boolean) => {
    if (change === null || secondOf(change) <= secondOf(user.createdAt)) return false // a host's column can store only whole seconds
    if (session && beganAfter(session, change)) return iat < secondOf(change) - (isWhole(change) ? 1 : 0)
    return cameOfIt ? iat < secondOf(change) : iat <= secondOf(change)
  }
  return isOlder(passwordChange, byLink) || isOlder(user.emailVerifiedAt, byLink) || isOlder(user.totpEnabledAt, amr.includes('otp'))
}

/** A column of whole seconds can round the change up. A login after the change must not be refused, so a second earlier counts as later. */
function beganAfter({ createdAt }: Pick<SessionRecord, 'createdAt'>, change: Date): boolean {
  const [began, changed] = [createdAt.getTime(), change.getTime()]
  return began >= changed || (isWhole(change) && began > changed - 1_000)
}

/** A database can give the id of a deleted account again: the token is then of another person. */
export function isOfEarlierAccount({ iat }: Pick<AccessTokenClaims, 'iat'>, { createdAt }: Pick<UserRecord, 'createdAt'>): boolean {
  return iat < secondOf(createdAt)
}

/** @throws InvalidTokenError */
export function refuseEarlierAccount(claims: Pick<AccessTokenClaims, 'iat'>, user: Pick<UserRecord, 'createdAt'>): void {
  if (isOfEarlierAccount(claims, user)) throw new InvalidTokenError({ reason: 'account_gone' })
}

function secondOf(instant: Date): number {
  return Math.floor(instant.getTime() / 1000)
}

function isWhole(instant: Date): boolean {
  return instant.getTime() % 1000 === 0
}
