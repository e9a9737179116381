import type { AuthContext } from '../../context'
import { describeError, type Logger } from '../../core/logger'
import type { Clearing } from '../take-over'

/**
 * Runs a transaction that empties the name and the host's fields of an account. If the database rejects the empty values, the function runs
 * the work again: with a placeholder for the name, then also without emptying the fields. Otherwise a column that is not nullable would
 * lock the owner out.
 */
export function retryingWithoutFields<T>(ctx: AuthContext, work: (clearing: Clearing) => Promise<T>): Promise<T> {
  const keepingFields = async (error: Error) => {
    const result = await work('placeholder')
    warnOfKeptFields(ctx, error)
    return result
  }
  const withPlaceholder = () => orElse(() => work('placeholder and fields'), keepingFields)
  return orElse(() => work('name and fields'), withPlaceholder)
}

/** Runs `work`, and `otherwise` if the database rejects a value. */
async function orElse<T>(work: () => Promise<T>, otherwise: (error: Error) => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'DriverError') throw error
    return otherwise(error)
  }
}

const warned = new WeakSet<Logger>()

/** Logs the error once per logger, because every account has the same cause. */
function warnOfKeptFields({ logger }: AuthContext, error: Error): void {
  if (warned.has(logger)) return
  warned.add(logger)
  logger.error(
    { error: describeError(error) },
    'doorward: the name or your own fields of an earlier signup could not be removed, because a column does not allow null. The old values stay. Clear them in onTakeOver and onSignup, or allow null in the columns.',
  )
}
