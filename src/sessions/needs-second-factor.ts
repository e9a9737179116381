import type { AuthContext } from '../context'
import { isSecondFactor } from '../core/amr'
import type { UserRecord } from '../store/auth-store'
import type { Login } from './login'

/**
 * Returns true if the account has a second factor that this login has not shown. In that case, `finishLogin` returns a challenge instead of
 * a session.
 */
export function needsSecondFactor({ settings }: AuthContext, user: UserRecord, { amr }: Login): boolean {
  return settings.mfaEnabled && user.totpEnabledAt !== null && !amr.some(isSecondFactor)
}
