import { InvalidTokenError } from '../errors'
import type { UserRecord } from '../store/auth-store'
import type { AccessTokenClaims } from './access-token'

/**
 * For the few operations that add a way into an account. An access token lives on for minutes after a reset, a new
 * factor or the proof of the address has ended its session; whoever was put out by one of them must not use that time
 * to come back for good. The owner's client refreshes, and asks again.
 *
 * @throws InvalidTokenError
 */
export function refuseSupersededToken({ iat }: AccessTokenClaims, user: UserRecord): void {
  const changes = [user.passwordSetAt, user.totpEnabledAt, user.emailVerifiedAt].map((instant) => instant?.getTime() ?? 0)
  // `iat` counts whole seconds.
  if (iat < Math.floor(Math.max(...changes) / 1000)) throw new InvalidTokenError()
}
