import { type AuthContext, storedPasskeys } from '../../context'

/** Removes every passkey of a user inside the caller's transaction, even while passkeys are off. Returns the ids of the passkeys. */
export async function removePasskeys(ctx: AuthContext, userId: string): Promise<string[]> {
  const passkeys = await storedPasskeys(ctx)
  const ids = ((await passkeys?.listForUser(userId)) ?? []).map(({ id }) => id)
  if (ids.length > 0) await passkeys?.deleteForUser(userId)
  return ids
}
