import type { AuthContext } from '../context'
import { AppError, OAuthError } from '../errors'
import { describeError } from '../logger'

/**
 * A call of a provider client. What it throws becomes ours: its 502s name the registration key, and anything a custom
 * client throws that is no error of this library is a 502 too, never a 500 (contract section 12, provider answers).
 */
export async function withProviderErrors<T>(ctx: AuthContext, provider: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (thrown) {
    throw refusal(ctx, provider, thrown)
  }
}

function refusal(ctx: AuthContext, provider: string, thrown: unknown): AppError {
  const error = thrown instanceof AppError ? thrown : new OAuthError({ details: { status: null, body: null }, cause: thrown })
  if (!(error instanceof OAuthError)) return error
  const { status, body } = error.details
  const details = { ...error.details, provider, status: status ?? null, body: body ?? null }
  ctx.events.emit('provider.failed', { provider, code: error.code, status: typeof status === 'number' ? status : null })
  ctx.logger.warn({ provider, status: details.status, cause: describeError(error.cause ?? error) }, 'doorward: a provider call failed')
  return new (error.constructor as typeof OAuthError)({ details, cause: error.cause })
}
