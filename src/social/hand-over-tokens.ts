import type { AuthContext } from '../context'
import { inTime } from '../in-time'
import { describeError, withOwnMessage } from '../logger'
import type { OAuthTokens } from '../providers/provider-client'
import { toPublicUser } from '../store/public-user'

const deadlineMs = 5_000

/**
 * Gives the provider's tokens to the host, which may keep them; we do not. Never call it inside a transaction of ours, because the host may
 * query its database. Where the host's function fails or takes longer than 5 seconds the log says so, and the login stands.
 */
export async function handOverTokens(ctx: AuthContext, userId: string, provider: string, tokens: OAuthTokens): Promise<void> {
  const { onProviderTokens: hook } = ctx
  if (!hook) return
  try {
    const user = await ctx.store.users.find(userId)
    // An async arrow: a function that throws at once is like one that rejects.
    if (user) await inTime((async () => hook(toPublicUser(user), provider, tokens))(), deadlineMs, late)
  } catch (error) {
    ctx.logger.error({ provider, error: describeError(error) }, 'doorward: onProviderTokens failed; the login stands.')
  }
}

function late(): Error {
  return withOwnMessage(Object.assign(new Error('onProviderTokens took too long.'), { code: 'TIMEOUT' }))
}
