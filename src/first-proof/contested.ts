import type { AuthContext } from '../context'
import { hashOpaqueToken, newOpaqueToken } from '../opaque-token'
import type { UserRecord } from '../store/auth-store'

const centuryMs = 36_525 * 86_400_000

/**
 * Notes that more than one signup was made for the address of a pending account: from here on its activation link alone does not say
 * whose password it is. The row never expires, so that no purge forgets it; the activation spends it. Inside a transaction that holds
 * the user's row.
 */
export async function markContested(ctx: AuthContext, user: Pick<UserRecord, 'id'>): Promise<void> {
  if (await isContested(ctx, user)) return
  const now = ctx.now()
  await ctx.store.userTokens.insert({
    userId: user.id,
    tokenHash: hashOpaqueToken(newOpaqueToken()), // opens nothing: nobody has the token
    purpose: 'CONTESTED',
    payload: null,
    expiresAt: new Date(now.getTime() + centuryMs),
    usedAt: null,
    createdAt: now,
  })
}

export async function isContested(ctx: AuthContext, { id }: Pick<UserRecord, 'id'>): Promise<boolean> {
  return (await ctx.store.userTokens.listOpen(id, 'CONTESTED', ctx.now())).length > 0
}
