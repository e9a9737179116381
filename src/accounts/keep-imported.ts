import type { AuthContext } from '../context'
import { hashOpaqueToken, newOpaqueToken } from '../core/opaque-token'
import type { UserRecord } from '../store/auth-store'
import { neverEnds } from '../store/never-ends'

/**
 * Keeps the purge from a pending account that no sign-up made, for example an imported account. Such an account has no activation link, so a
 * stranger's request would otherwise make its first link, and the purge would delete the account after that link. Inserts a used link that
 * never expires. Call the function inside a transaction that has locked the user's row, before a further link.
 */
export async function keepImported({ store, now }: AuthContext, { id: userId }: UserRecord): Promise<void> {
  if (!store.users.deleteAbandoned || !store.users.fields.has('activatedAt')) return
  if ((await store.userTokens.listOpen(userId, 'ACTIVATION', new Date(0))).length > 0) return
  const at = now()
  const tokenHash = hashOpaqueToken(newOpaqueToken()) // nobody has this token
  await store.userTokens.insert({
    userId,
    tokenHash,
    purpose: 'ACTIVATION',
    payload: null,
    expiresAt: neverEnds(at),
    usedAt: at,
    createdAt: at,
  })
}
