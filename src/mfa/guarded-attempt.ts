import type { AuthContext } from '../context'
import { MfaCodeInvalidError, MfaThrottledError } from '../errors'
import { takeUnit } from '../limits/take-unit'

/**
 * One guess at an account's second factor. The unit is taken before the code is looked at, one budget for every route;
 * a success forgets the wrong ones, a new login does not (contract section 8).
 * `name`: of another budget of the same size, for a factor that is not active yet.
 * @throws MfaThrottledError, and what the attempt throws
 */
export async function guardedAttempt<T>(ctx: AuthContext, userId: string, attempt: () => Promise<T>, name = 'mfa:account'): Promise<T> {
  const taken = await takeUnit(ctx, ctx.budgets.mfa, [name, userId], MfaThrottledError)
  try {
    const result = await attempt()
    await taken.clear()
    return result
  } catch (error) {
    // Whatever else went wrong was no guess.
    if (!(error instanceof MfaCodeInvalidError)) await taken.giveBack()
    else ctx.events.emit('mfa.failed', { userId })
    throw error
  }
}
