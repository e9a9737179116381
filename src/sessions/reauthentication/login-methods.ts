import { type AuthContext, passkeysOf } from '../../context'
import { hasPasswords } from '../../core/config/has-passwords'
import { hasPassword } from '../../passwords/unusable-password'
import type { UserRecord } from '../../store/auth-store'

/**
 * Returns true if the account can still log in after one identity or one passkey is removed. These other ways count
 * if their feature is on: a password that a person has set, a verified address, another identity, another passkey. Call the function inside
 * the transaction that locks the user's row. Otherwise two removals at once could remove every way to log in.
 */
export async function hasOtherLoginMethod(ctx: AuthContext, user: UserRecord, removed: 'identity' | 'passkey'): Promise<boolean> {
  const { oauthEnabled } = ctx.settings
  if ((hasPasswords(ctx.settings) && hasPassword(user)) || logsInByEmail(ctx, user)) return true
  const identities = oauthEnabled ? ((await ctx.store.identities?.listForUser(user.id)) ?? []).length : 0
  const passkeys = ((await passkeysOf(ctx)?.listForUser(user.id)) ?? []).length
  return identities + passkeys > 1 || (removed === 'identity' ? passkeys : identities) > 0
}

/**
 * Returns true if the account can surely log in by email. Returns false if the host has a `refusesEmailLink` hook, because the hook could
 * reject the mail. The function cannot ask the hook inside a transaction.
 */
function logsInByEmail({ settings, refusesEmailLink }: AuthContext, user: UserRecord): boolean {
  return settings.emailLogin !== 'off' && user.emailVerifiedAt !== null && refusesEmailLink === null
}
