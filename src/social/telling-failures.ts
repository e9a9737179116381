import type { AuthContext } from '../context'
import { AppError } from '../errors'
import { announceFailedLogin, type LoginAttempt } from '../session/announce-failed-login'

/** Observers hear why a login did not happen: the reason is the code. `logIn` fills in the attempt as it learns who it is about. */
export async function tellingFailures<Result>(
  ctx: AuthContext,
  provider: string,
  attempt: LoginAttempt,
  logIn: () => Promise<Result>,
): Promise<Result> {
  try {
    return await logIn()
  } catch (error) {
    if (error instanceof AppError && ctx.providers.has(provider)) announceFailedLogin(ctx, attempt, { reason: error.code, provider })
    throw error
  }
}
