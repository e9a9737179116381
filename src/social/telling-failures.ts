import type { AuthContext } from '../context'
import { AppError } from '../errors'

/** Observers hear why a login did not happen; the reason is the code, and names nobody. */
export async function tellingFailures<Result>(ctx: AuthContext, provider: string, logIn: () => Promise<Result>): Promise<Result> {
  try {
    return await logIn()
  } catch (error) {
    if (error instanceof AppError && ctx.providers.has(provider)) ctx.events.emit('login.failed', { reason: error.code, provider })
    throw error
  }
}
