import type { AuthContext } from '../context'
import { type TakenUnit, takeUnit } from './take-unit'

/**
 * Counts a change of the ways to log in. An account may make ten changes a day. The notices of these changes have no rate limit, so that
 * many other mails cannot hide a notice. Therefore the number of changes is limited. Call the function before the change. If the change
 * does not happen, call `giveBack()`. Without a mailer nothing is counted, because no notice is sent.
 * @throws TooManyRequestsError with details.retry_after_seconds
 */
export function takeChange(ctx: AuthContext, { id }: { id: string }): Promise<TakenUnit> {
  return takeUnit(ctx, ctx.postman ? ctx.budgets.changes : false, ['change:account', id])
}
