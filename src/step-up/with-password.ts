import type { AuthContext } from '../context'
import { InvalidCredentialsError } from '../errors'
import { type TakenUnit, takeUnit } from '../limits/take-unit'
import { verifyPassword } from '../passwords/verify-password'
import type { SessionRecord, UserRecord } from '../store/auth-store'

/**
 * Runs the work if the password is right. Within 900 s, a session may send five wrong passwords and an account 25, so that a stolen session
 * leaves attempts for the owner. Attempts are counted before the check, so that of many at once only five are checked. A success gives its
 * own attempts back.
 * @param session of the request; null or left out by a caller without one: then five for the account
 * @throws InvalidCredentialsError, TooManyRequestsError, and what the work throws
 */
export async function withPassword<T>(
  ctx: AuthContext,
  user: UserRecord,
  password: string,
  work: () => Promise<T>,
  session?: SessionRecord | null,
): Promise<T> {
  const taken = await takeUnits(ctx, user, session)
  const giveBack = () => Promise.all(taken.map((unit) => unit.giveBack()))
  try {
    const { matches } = await verifyPassword(ctx, user.hashedPassword, password)
    if (!matches) throw new InvalidCredentialsError()
    const result = await work()
    await giveBack()
    return result
  } catch (error) {
    if (!(error instanceof InvalidCredentialsError)) await giveBack()
    throw error
  }
}

async function takeUnits(ctx: AuthContext, user: UserRecord, session?: SessionRecord | null): Promise<TakenUnit[]> {
  const { password, passwordOfAccount } = ctx.budgets
  const own = await takeUnit(ctx, password, session ? ['password:session', session.id] : ['password:account', user.id])
  if (!session) return [own]
  try {
    return [own, await takeUnit(ctx, passwordOfAccount, ['password:sessions', user.id])]
  } catch (error) {
    await own.giveBack()
    throw error
  }
}
