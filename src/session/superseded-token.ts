import type { AuthContext } from '../context'
import { InvalidTokenError } from '../errors'
import type { UserRecord } from '../store/auth-store'
import type { AccessTokenClaims } from './access-token'

/**
 * For the few operations that add a way into an account. An access token lives on for minutes after a reset, a new
 * factor or the proof of the address has ended its session; whoever was put out by one of them must not use that time
 * to come back for good. The owner's client refreshes, and asks again.
 *
 * `iat` counts whole seconds: a token of the very second of the change may be older than it, and is refused too. What
 * came with the account itself put nobody out.
 * @throws InvalidTokenError
 */
export function refuseSupersededToken({ store }: AuthContext, { iat }: AccessTokenClaims, user: UserRecord): void {
  // A table that does not say when the password changed says when anything did.
  const passwordChange = store.users.fields.has('passwordSetAt') ? user.passwordSetAt : user.updatedAt
  const changes = [passwordChange, user.totpEnabledAt, user.emailVerifiedAt].map((instant) => instant?.getTime() ?? 0)
  const latest = Math.max(...changes)
  if (latest > user.createdAt.getTime() && iat <= Math.floor(latest / 1000)) throw new InvalidTokenError()
}
