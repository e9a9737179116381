import { hasPasswords } from '../config/has-passwords'
import { type AuthContext, passkeysOf } from '../context'
import { hasPassword } from '../passwords/unusable-password'
import type { UserRecord } from '../store/auth-store'

/**
 * Whether an account could still sign in without one of its identities, or one of its passkeys (contract 16, rule 8): by a password that
 * a person has set, a verified address, another identity or another passkey, if the feature is on. Runs inside the transaction that locks
 * the user's row, so that two removals at once cannot remove everything.
 */
export async function hasOtherLoginMethod(ctx: AuthContext, user: UserRecord, removed: 'identity' | 'passkey'): Promise<boolean> {
  const { oauthEnabled } = ctx.settings
  if ((hasPasswords(ctx.settings) && hasPassword(user)) || logsInByEmail(ctx, user)) return true
  const identities = oauthEnabled ? ((await ctx.store.identities?.listForUser(user.id)) ?? []).length : 0
  const passkeys = ((await passkeysOf(ctx)?.listForUser(user.id)) ?? []).length
  return identities + passkeys > 1 || (removed === 'identity' ? passkeys : identities) > 0
}

/** A host that may refuse mails is not asked inside a transaction: there the address alone does not count. */
function logsInByEmail({ settings, refusesEmailLink }: AuthContext, user: UserRecord): boolean {
  return settings.emailLogin !== 'off' && user.emailVerifiedAt !== null && refusesEmailLink === null
}
