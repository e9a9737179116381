import { type AuthMethod, isSecondFactor } from '../amr'
import type { AuthContext } from '../context'
import { MfaRequiredError } from '../errors'
import type { UserRecord } from '../store/auth-store'

/**
 * A password alone is not enough where a second factor is active. `amr`: of the session that asks; undefined for a call
 * without one, whose caller answers for it.
 * @throws MfaRequiredError
 */
export function requireFactor({ settings }: AuthContext, user: UserRecord, amr: readonly AuthMethod[] | undefined): void {
  if (amr && settings.mfaEnabled && user.totpEnabledAt && !amr.some(isSecondFactor)) throw new MfaRequiredError()
}
