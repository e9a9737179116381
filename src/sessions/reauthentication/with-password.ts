import type { AuthContext } from '../../context'
import { InvalidCredentialsError } from '../../core/errors'
import { verifyPassword } from '../../passwords/verify-password'
import { type TakenUnit, takeUnit } from '../../rate-limits/take-unit'
import type { SessionRecord, UserRecord } from '../../store/auth-store'

/**
 * Runs the work if the password is right. Within 900 s, a session may send five wrong passwords. All sessions of an account together may
 * send 25 wrong passwords. So an attacker with one stolen session cannot use up the owner's attempts. Attempts are counted before the
 * password is checked, so that at most five of many parallel attempts are checked. A success takes its own attempts back.
 * @param session the session of the request; null or left out for a caller without a session, and the account may then send five wrong
 *   passwords
 * @throws InvalidCredentialsError, TooManyRequestsError, and the errors of the work
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
    const { matches } = await verifyPassword(ctx, user.hashedPassword, password, { isKnownDevice: true })
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
  const { password, passwordOfAccount } = ctx.rateLimits
  const own = await takeUnit(ctx, password, session ? ['password:session', session.id] : ['password:account', user.id])
  if (!session) return [own]
  try {
    return [own, await takeUnit(ctx, passwordOfAccount, ['password:sessions', user.id])]
  } catch (error) {
    await own.giveBack()
    throw error
  }
}
