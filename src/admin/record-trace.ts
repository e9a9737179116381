import type { AuthContext } from '../context'
import { hashOpaqueToken, newOpaqueToken } from '../core/opaque-token'
import type { UserRecord } from '../store/auth-store'

/**
 * Inserts a used activation link, if the table has no column for the activation date. The link shows that the account was active once.
 * Without this link, an account that was deactivated before its first login would count as pending. Such an account could then activate
 * itself again.
 * @throws Error if the store did not record the link as used; the transaction is then rolled back
 */
export async function recordTrace(ctx: AuthContext, user: UserRecord): Promise<void> {
  if (ctx.store.users.fields.has('activatedAt')) return
  const now = ctx.now()
  const tokenHash = hashOpaqueToken(newOpaqueToken())
  const expiresAt = new Date(now.getTime() + ctx.settings.activationTtlSeconds * 1000)
  await ctx.store.userTokens.insert({
    userId: user.id,
    tokenHash,
    purpose: 'ACTIVATION',
    payload: null,
    expiresAt,
    usedAt: null,
    createdAt: now,
  })
  // Inserts the link unused and then uses it, because `consume` also determines how long the store keeps the used row.
  const trace = await ctx.store.userTokens.consume(tokenHash, 'ACTIVATION', now)
  if (!trace)
    throw new Error('The store could not use a token that it had just inserted, so nothing shows that the account was active once.')
}
