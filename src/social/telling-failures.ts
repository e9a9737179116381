import type { AuthContext } from '../context'
import { AppError } from '../core/errors'
import { announceFailedLogin, type LoginAttempt } from '../sessions/announce-failed-login'

/**
 * Emits `login.failed` if a login fails. The reason is the error's code. `logIn` sets the account in `attempt` as soon as it finds the
 * account.
 */
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
