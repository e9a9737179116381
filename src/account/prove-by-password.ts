import type { AuthContext } from '../context'
import { InvalidCredentialsError } from '../errors'
import { takeUnit } from '../limits/take-unit'
import { verifyPassword } from '../passwords/verify-password'
import type { UserRecord } from '../store/auth-store'

/**
 * A signed-in person's own password, once more: five wrong ones per account and 900 s, whichever session they come from.
 * @throws InvalidCredentialsError, TooManyRequestsError
 */
export async function proveByPassword(ctx: AuthContext, user: UserRecord, password: string): Promise<void> {
  const taken = await takeUnit(ctx, ctx.budgets.password, ['password:account', user.id])
  try {
    const { matches } = await verifyPassword(ctx, user.hashedPassword, password)
    if (!matches) throw new InvalidCredentialsError()
  } catch (error) {
    if (!(error instanceof InvalidCredentialsError)) await taken.giveBack()
    throw error
  }
  await taken.clear()
}
