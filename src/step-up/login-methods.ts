import { hasPasswords } from '../config/has-passwords'
import { type AuthContext, passkeysOf } from '../context'
import { hasPassword } from '../passwords/unusable-password'
import type { UserRecord } from '../store/auth-store'

/**
 * True if the account could still log in without one of its identities or passkeys (contract 16, rule 8). Other ways are a password that a
 * person has set, a verified address, another identity or another passkey, if the feature is on. Runs inside the transaction that locks the
 * user's row, so that two removals at once cannot remove everything.
 */
export async function hasOtherLoginMethod(ctx: AuthContext, user: UserRecord, removed: 'identity' | 'passkey'): Promise<boolean> {
  const { oauthEnabled } = ctx.settings
  if ((hasPasswords(ctx.settings) && hasPassword(user)) || logsInByEmail(ctx, user)) return true
  const identities = oauthEnabled ? ((await ctx.store.identities?.listForUser(user.id)) ?? []).length : 0
  const passkeys = ((await passkeysOf(ctx)?.listForUser(user.id)) ?? []).length
  return identities + passkeys > 1 || (removed === 'identity' ? passkeys : identities) > 0
}

/** True if login by email works. False if the host has `refusesEmailLink`, because the hook is not called inside a transaction. */
function logsInByEmail({ settings, refusesEmailLink }: AuthContext, user: UserRecord): boolean {
  return settings.emailLogin !== 'off' && user.emailVerifiedAt !== null && refusesEmailLink === null
}
