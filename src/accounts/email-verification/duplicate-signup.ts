import type { AuthContext } from '../../context'
import { hashOpaqueToken, newOpaqueToken } from '../../core/opaque-token'
import type { UserRecord } from '../../store/auth-store'
import { neverEnds } from '../../store/never-ends'

/**
 * Records that a pending account got sign-ups with different passwords. In that case the activation link alone does not show who chose the
 * account's password. The row never expires, so no purge deletes the row. The activation marks the row as used. Call the function inside a
 * transaction that has locked the user's row.
 */
export async function markDuplicateSignups(ctx: AuthContext, user: Pick<UserRecord, 'id'>): Promise<void> {
  if (await hasDuplicateSignups(ctx, user)) return
  const now = ctx.now()
  await ctx.store.userTokens.insert({
    userId: user.id,
    tokenHash: hashOpaqueToken(newOpaqueToken()), // nobody has this token
    purpose: 'CONTESTED',
    payload: null,
    expiresAt: neverEnds(now),
    usedAt: null,
    createdAt: now,
  })
}

export async function hasDuplicateSignups(ctx: AuthContext, { id }: Pick<UserRecord, 'id'>): Promise<boolean> {
  return (await ctx.store.userTokens.listOpen(id, 'CONTESTED', ctx.now())).length > 0
}
