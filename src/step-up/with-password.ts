import type { AuthContext } from '../context'
import { InvalidCredentialsError } from '../errors'
import { takeUnit } from '../limits/take-unit'
import { verifyPassword } from '../passwords/verify-password'
import type { UserRecord } from '../store/auth-store'

/**
 * What a signed-in person may do with the own password shown once more: five wrong ones per account and 900 s, whichever
 * session they come from. A right one gets its unit back when all is done, and no other: of many at once, five are looked at.
 * @throws InvalidCredentialsError, TooManyRequestsError, and what the work throws
 */
export async function withPassword<T>(ctx: AuthContext, user: UserRecord, password: string, work: () => Promise<T>): Promise<T> {
  const taken = await takeUnit(ctx, ctx.budgets.password, ['password:account', user.id])
  try {
    const { matches } = await verifyPassword(ctx, user.hashedPassword, password)
    if (!matches) throw new InvalidCredentialsError()
    const result = await work()
    await taken.giveBack()
    return result
  } catch (error) {
    if (!(error instanceof InvalidCredentialsError)) await taken.giveBack()
    throw error
  }
}
