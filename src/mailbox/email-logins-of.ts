import type { AuthContext } from '../context'
import type { EmailLoginStore, UserRecord } from '../store/auth-store'

/**
 * The rows of login by email; null where no feature writes any: login by email is off, and without a mailer no session is confirmed by a
 * mailed code. Then the table need not be there.
 */
export function emailLoginsOf({ store, settings, postman }: AuthContext): EmailLoginStore | null {
  const isWritten = settings.emailLogin !== 'off' || postman !== null
  return (isWritten && store.emailLogins) || null
}

/**
 * Uses up everything that was mailed to an account and works once, but UNDO links, which only an undo ends. Inside a transaction that holds
 * the user's row.
 */
export async function endOneShots(ctx: AuthContext, { id, email }: Pick<UserRecord, 'id' | 'email'>): Promise<void> {
  await ctx.store.userTokens.consumeAllForUser(id, ctx.now())
  await emailLoginsOf(ctx)?.consumeAllForEmail(email, ctx.now())
}
