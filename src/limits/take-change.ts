import type { AuthContext } from '../context'
import { type TakenUnit, takeUnit } from './take-unit'

/**
 * Takes one of the ten changes a day that an account may make to what lets its person in. The notices of these changes are outside
 * the limits of mail, so that no flood of other mails hides one; their number is bounded here instead. Call it before the change,
 * and `giveBack()` when the change was refused. Without a mailer nothing is counted, because nobody is told.
 * @throws TooManyRequestsError with details.retry_after_seconds
 */
export function takeChange(ctx: AuthContext, { id }: { id: string }): Promise<TakenUnit> {
  return takeUnit(ctx, ctx.postman ? ctx.budgets.changes : false, ['change:account', id])
}
