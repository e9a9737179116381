import type { AuthContext } from '../context'
import { InvalidCredentialsError } from '../errors'
import { type TakenUnit, takeUnit } from '../limits/take-unit'
import { verifyPassword } from '../passwords/verify-password'
import type { SessionRecord, UserRecord } from '../store/auth-store'

/**
 * What a signed-in person may do with the own password shown once more: five wrong ones of a session, and 25 of an account, within 900 s.
 * So a stolen session leaves the owner attempts of their own. A right one gets its units back when all is done, and no other: of many at
 * once, five are looked at.
 * @param session of the request; null, or left out by a caller without one: five of the account
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
