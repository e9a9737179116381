import type { AuthContext } from '../context'
import { InvalidCredentialsError } from '../errors'
import { hasPassword } from '../passwords/unusable-password'
import type { UserRecord } from '../store/auth-store'
import { withPassword } from './with-password'

/**
 * With `reauthenticate`, what adds a way into an account, or a lock to it, takes the password once more, unless nobody knows
 * it (contract section 13, Step-up).
 * @throws InvalidCredentialsError, TooManyRequestsError
 */
export async function reauthenticate(ctx: AuthContext, user: UserRecord, password: string | undefined): Promise<void> {
  if (!ctx.settings.reauthenticate || !hasPassword(user)) return
  if (password === undefined) throw new InvalidCredentialsError()
  await withPassword(ctx, user, password, async () => undefined)
}
