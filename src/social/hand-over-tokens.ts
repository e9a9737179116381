import type { AuthContext } from '../context'
import { describeError, withOwnMessage } from '../core/logger'
import { withTimeout } from '../core/with-timeout'
import type { OAuthTokens } from '../providers/provider-client'
import { toPublicUser } from '../store/user-records'

const deadlineMs = 5_000

/** Never call it inside a transaction: the hook can query the database. If it fails or takes over 5 seconds, the login goes on. */
export async function handOverTokens(ctx: AuthContext, userId: string, provider: string, tokens: OAuthTokens): Promise<void> {
  const { onProviderTokens: hook } = ctx
  if (!hook) return
  try {
    const user = await ctx.store.users.find(userId)
    // Async, so that a function that throws counts like one that rejects.
    if (user) await withTimeout((async () => hook(toPublicUser(user), provider, tokens))(), deadlineMs, late)
  } catch (error) {
    ctx.logger.error({ provider, error: describeError(error) }, 'doorward: onProviderTokens failed. The person stays logged in.')
  }
}

function late(): Error {
  return withOwnMessage(Object.assign(new Error('onProviderTokens took too long.'), { code: 'TIMEOUT' }))
}
