import type { AuthContext } from '../context'
import { AppError } from '../errors'
import { announceFailedLogin, type LoginAttempt } from '../session/announce-failed-login'

/** Tells observers why a login failed: the reason is the error's code. `logIn` fills in `attempt` as soon as it knows the account. */
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
