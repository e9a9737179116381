import type { AuthContext } from '../context'
import { sentenceOf } from '../core/error-sentence'
import { AppError, OAuthError, OAuthProviderUnavailableError } from '../core/errors'
import type { CallPurpose } from '../core/http-client'
import { describeError } from '../core/logger'
import { clientRefused } from '../core/setup-warnings'
import { withTimeout } from '../core/with-timeout'
import { OAuth2Client } from '../providers/oauth2-client'
import { OidcClient } from '../providers/oidc-client'
import type { Provider } from '../providers/passport-provider'
import { cutBody, ProviderSaidNo } from '../providers/provider-refusal'
import { type CallLimits, limitInFlight } from '../providers/provider-request'
import { announceFailedLogin, type LoginAttempt } from '../sessions/devices/login-limits'

/** The provider's name in the option `providers`. */
type ProviderCall = readonly [provider: string, purpose: CallPurpose]

/** Our 502 errors then contain the registration key. Any other error of a custom client becomes a 502, never a 500. */
export async function withProviderErrors<T>(ctx: AuthContext, [provider, purpose]: ProviderCall, call: () => Promise<T>): Promise<T> {
  try {
    return await limitsOf(ctx.providers.get(provider)).run(purpose, () => withTimeout(call(), deadlineMs, late))
  } catch (thrown) {
    throw refusal(ctx, provider, thrown)
  }
}

const limits = new WeakMap<Provider, CallLimits>()
const unlimited: CallLimits = { run: (_purpose, call) => call() }

/**
 * A host's own client: its operations count, because its calls cannot be seen. Our clients count their calls themselves. With the keys in
 * memory they verify a token without a call, which a limit here could block while the provider hangs.
 */
function limitsOf(client: Provider | undefined): CallLimits {
  if (!client || client instanceof OidcClient || client instanceof OAuth2Client) return unlimited
  const limit =
    limits.get(client) ?? limitInFlight(() => new OAuthError({ cause: new Error('Too many calls of this client are under way.') }))
  limits.set(client, limit)
  return limit
}

// Longer than two calls of ten seconds: our clients make at most two, the exchange and the key set.
const deadlineMs = 25_000

/** A host's own client may have no deadline. */
function late(): Error {
  return new Error('The provider client did not settle in time.')
}

function refusal(ctx: AuthContext, provider: string, thrown: unknown): AppError {
  const error = thrown instanceof AppError ? thrown : new OAuthError({ details: { status: null, body: null }, cause: thrown })
  if (!(error instanceof OAuthError)) return error
  const said = error.cause instanceof ProviderSaidNo ? error.cause : null
  const { status, body } = told(error)
  const details = { provider, status, body }
  ctx.events.emit('provider.failed', { provider, code: error.code, status })
  ctx.logger.warn(
    { provider, status, error: said?.code ?? null, cause: describeError(error.cause ?? error) },
    'doorward: a provider call failed',
  )
  ctx.notices.keep({
    level: 'warn',
    entry: 'provider-refused',
    message: `the last failed call of provider ${provider}: ${sentenceOf(error.cause ?? error)}`,
    about: provider,
  })
  if (said?.refusesClient) ctx.notices.tell(clientRefused(provider, { ...said, body }))
  const Refusal = error instanceof OAuthProviderUnavailableError ? OAuthProviderUnavailableError : OAuthError
  return new Refusal({ details, cause: error.cause })
}

/** Cuts the body of a custom client to the limit of our own clients. */
function told({ details: { status, body } }: OAuthError): { status: number | null; body: string | null } {
  return { status: typeof status === 'number' ? status : null, body: typeof body === 'string' ? cutBody(body) : null }
}

/** `logIn` sets the account in `attempt` as soon as it finds it. */
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
