import type { AuthContext } from '../context'
import { describeError, withOwnMessage } from '../core/logger'
import { withTimeout } from '../core/with-timeout'
import type { OAuthTokens } from '../providers/provider-client'
import { toPublicUser } from '../store/user-records'

const deadlineMs = 5_000

/**
 * Passes the provider's tokens to the host. The host may store the tokens; doorward does not store them. Never call this function inside a
 * transaction, because the host's function can query the database. If the host's function fails or takes longer than 5 seconds, doorward
 * logs the failure, and the login continues.
 */
export async function handOverTokens(ctx: AuthContext, userId: string, provider: string, tokens: OAuthTokens): Promise<void> {
  const { onProviderTokens: hook } = ctx
  if (!hook) return
  try {
    const user = await ctx.store.users.find(userId)
    // Uses an async arrow, so that a function that throws counts like a function that rejects.
    if (user) await withTimeout((async () => hook(toPublicUser(user), provider, tokens))(), deadlineMs, late)
  } catch (error) {
    ctx.logger.error({ provider, error: describeError(error) }, 'doorward: onProviderTokens failed. The person stays logged in.')
  }
}

function late(): Error {
  return withOwnMessage(Object.assign(new Error('onProviderTokens took too long.'), { code: 'TIMEOUT' }))
}
