import type { AuthContext } from '../context'
import type { EmailLoginStore, UserRecord } from '../store/auth-store'

/**
 * Returns the store of login requests by email. Null if nothing uses it: login by email is off, and there is no mailer to send confirmation
 * codes. Then the table may be missing.
 */
export function emailLoginsOf({ store, settings, postman }: AuthContext): EmailLoginStore | null {
  const isWritten = settings.emailLogin !== 'off' || postman !== null
  return (isWritten && store.emailLogins) || null
}

/**
 * Invalidates every mailed link and code of an account, except UNDO links, which only an undo uses. Call it inside a transaction that has
 * locked the user's row.
 */
export async function endOneShots(ctx: AuthContext, { id, email }: Pick<UserRecord, 'id' | 'email'>): Promise<void> {
  await ctx.store.userTokens.consumeAllForUser(id, ctx.now())
  await emailLoginsOf(ctx)?.consumeAllForEmail(email, ctx.now())
}
