import type { AuthContext } from '../context'
import type { IdentityRecord, UserChanges, UserRecord } from '../store/auth-store'

/**
 * The owner of the account's address has just proven to read it: a redeemed activation, reset or verification link. From
 * here the address counts as proven, and identities linked before are gone, except one that stands for this very
 * address by its provider's own word: whoever registered the address first may have linked one to come back by
 * (contract section 13 (b)).
 *
 * Inside the caller's unit, which has locked the user's row, so that no link slips in between; `changes` are what the
 * proof brings about besides. Returns the providers that were removed; tell observers of them (`identity.unlinked`) once
 * the unit is committed.
 */
export async function recordMailboxProof(
  ctx: AuthContext,
  user: Pick<UserRecord, 'id' | 'email'>,
  changes: UserChanges = {},
): Promise<string[]> {
  const now = ctx.now()
  await ctx.store.users.update(user.id, { ...changes, emailVerifiedAt: now, updatedAt: now })
  const linked = (await ctx.store.identities?.listForUser(user.id)) ?? []
  const removed = linked.filter((identity) => !standsFor(identity, user.email)).map(({ provider }) => provider)
  // One identity per provider and user: the provider names it.
  for (const provider of removed) await ctx.store.identities?.deleteForUser(user.id, provider)
  return removed
}

/** Silence of the provider (null) is not its word. */
function standsFor({ email, emailVerified }: IdentityRecord, address: string): boolean {
  return email === address && emailVerified === true
}
