import { type AuthContext, storedPasskeys } from '../context'

/** Removes every passkey of a user, inside the caller's transaction, also while passkeys are off. Returns their ids. */
export async function removePasskeys(ctx: AuthContext, userId: string): Promise<string[]> {
  const passkeys = await storedPasskeys(ctx)
  const ids = ((await passkeys?.listForUser(userId)) ?? []).map(({ id }) => id)
  if (ids.length > 0) await passkeys?.deleteForUser(userId)
  return ids
}
