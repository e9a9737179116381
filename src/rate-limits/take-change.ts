import type { RateLimits } from './rate-limit'
import { type LimitContext, type TakenUnit, takeUnit } from './take-unit'

interface ChangeContext extends LimitContext {
  readonly rateLimits: Pick<RateLimits, 'changes'>
  readonly mailQueue: object | null
}

/**
 * Counts a change of the ways to log in. An account may make ten changes a day. The notices of these changes have no rate limit, because
 * other mails could use up such a limit, and the owner would get no notice. The limit of the changes also limits the number of notices.
 * Call the function before the change. If the change does not happen, call `giveBack()`. Without a mailer nothing is counted, because no
 * notice is sent.
 * @throws TooManyRequestsError with details.retry_after_seconds
 */
export function takeChange(ctx: ChangeContext, { id }: { id: string }): Promise<TakenUnit> {
  return takeUnit(ctx, ctx.mailQueue ? ctx.rateLimits.changes : false, ['change:account', id])
}
