import { type AuthContext, passkeysOf } from '../context'

/** Removes every passkey of a user, inside the caller's transaction. Returns their ids; none while passkeys are off. */
export async function removePasskeys(ctx: AuthContext, userId: string): Promise<string[]> {
  const passkeys = passkeysOf(ctx)
  const ids = ((await passkeys?.listForUser(userId)) ?? []).map(({ id }) => id)
  if (ids.length > 0) await passkeys?.deleteForUser(userId)
  return ids
}
