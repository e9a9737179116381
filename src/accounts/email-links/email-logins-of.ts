import type { AuthContext } from '../../context'
import type { EmailLoginStore, UserRecord } from '../../store/auth-store'

/**
 * Returns the store of requests for a login by email. Returns null if login by email is off and there is no mailer for confirmation codes.
 * In that case the table may be missing.
 */
export function emailLoginsOf({ store, settings, mailQueue }: AuthContext): EmailLoginStore | null {
  const isWritten = settings.emailLogin !== 'off' || mailQueue !== null
  return (isWritten && store.emailLogins) || null
}

/**
 * Invalidates every mailed link and code of an account. UNDO links stay valid, because only an undo uses them up. Call the function inside
 * a transaction that has locked the user's row.
 */
export async function endOneShots(ctx: AuthContext, { id, email }: Pick<UserRecord, 'id' | 'email'>): Promise<void> {
  await ctx.store.userTokens.consumeAllForUser(id, ctx.now())
  await emailLoginsOf(ctx)?.consumeAllForEmail(email, ctx.now())
}
