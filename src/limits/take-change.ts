import type { AuthContext } from '../context'
import { type TakenUnit, takeUnit } from './take-unit'

/**
 * Counts one change of the ways to log in; an account may make ten a day. The notices of these changes are outside the rate limits of mail,
 * so that many other mails cannot hide one. This limit bounds their number instead. Call it before the change, and `giveBack()` if the
 * change was refused. Without a mailer nothing is counted, because no notice is sent.
 * @throws TooManyRequestsError with details.retry_after_seconds
 */
export function takeChange(ctx: AuthContext, { id }: { id: string }): Promise<TakenUnit> {
  return takeUnit(ctx, ctx.postman ? ctx.budgets.changes : false, ['change:account', id])
}
