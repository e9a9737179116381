import type { AuthContext } from '../context'
import { hashOpaqueToken, newOpaqueToken } from '../opaque-token'
import type { UserRecord } from '../store/auth-store'

const centuryMs = 36_525 * 86_400_000

/**
 * Records that a pending account got more than one sign-up, so its activation link alone does not tell whose password it has. The row never
 * expires, so that no purge deletes it; the activation uses it. Call it inside a transaction that has locked the user's row.
 */
export async function markContested(ctx: AuthContext, user: Pick<UserRecord, 'id'>): Promise<void> {
  if (await isContested(ctx, user)) return
  const now = ctx.now()
  await ctx.store.userTokens.insert({
    userId: user.id,
    tokenHash: hashOpaqueToken(newOpaqueToken()), // a placeholder: nobody has this token
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
