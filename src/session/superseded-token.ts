import { isSecondFactor } from '../amr'
import type { AuthContext } from '../context'
import { InvalidTokenError } from '../errors'
import type { UserRecord } from '../store/auth-store'
import type { AccessTokenClaims } from './access-token'
import { isAlive } from './find-session'

/**
 * For the few operations that add a way into an account. An access token lives on for minutes after a reset, a new
 * factor, the proof of the address or a logout has ended its session; whoever was put out by one of them must not use that
 * time to come back for good. The owner's client refreshes, and asks again.
 *
 * `iat` counts whole seconds: a token of the very second of the change may be older than it, and is refused too, unless
 * its methods say that it came of it: of the mailed link (`email`) or the new factor's code (`otp`). What came with the
 * account itself put nobody out.
 * @throws InvalidTokenError
 */
export async function refuseSupersededToken(ctx: AuthContext, claims: AccessTokenClaims, user: UserRecord): Promise<void> {
  if (isSuperseded(ctx, claims, user) || !(await isOfLiveSession(ctx, claims))) throw new InvalidTokenError()
}

function isSuperseded({ store }: AuthContext, { iat, amr }: AccessTokenClaims, user: UserRecord): boolean {
  // A table that does not say when the password changed says when anything did.
  const passwordChange = store.users.fields.has('passwordSetAt') ? user.passwordSetAt : user.updatedAt
  const byLink = amr.includes('email')
  return (
    isOlder(iat, passwordChange, user, byLink) ||
    isOlder(iat, user.emailVerifiedAt, user, byLink) ||
    isOlder(iat, user.totpEnabledAt, user, amr.some(isSecondFactor))
  )
}

/** A token without `sid` is of release 0.1.0: its client refreshes. Stateless refresh tokens leave no row, and nothing to ask. */
async function isOfLiveSession({ store, now }: AuthContext, { sub, sid }: AccessTokenClaims): Promise<boolean> {
  if (!store.sessions) return true
  const found = sid === undefined ? null : await store.sessions.find({ id: sid })
  return found?.session.userId === sub && isAlive(found.session, now())
}

function isOlder(iat: number, change: Date | null, { createdAt }: UserRecord, cameOfIt: boolean): boolean {
  if (change === null || change <= createdAt) return false
  const second = Math.floor(change.getTime() / 1000)
  return cameOfIt ? iat < second : iat <= second
}
