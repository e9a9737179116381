import { type AuthContext, transaction } from '../../context'
import { InternalError } from '../../core/errors'
import { unusablePassword } from '../../passwords/unusable-password'
import type { LoginClient } from '../../sessions/login'
import { startLogin } from '../../sessions/start-login'
import type { EmailLoginRecord, NewUser } from '../../store/auth-store'
import { transactionOf } from '../../store/knex/knex-store'
import { newUser } from '../../store/new-user'
import { type ConfirmedEmailLogin, type ConfirmingEmailLogin, consume, loginOf } from './log-in-by-email'

/**
 * Creates an active account with a verified address, for an address without an account. If the host's `onSignup` throws, no account is
 * created and the login stays unused. If `onSignup` makes the account inactive, the account stays, but no session begins.
 * @throws EmailLoginInvalidError if another confirmation was first; DuplicateRecordError if another request created the account meanwhile
 */
export function signUpByEmail(
  ctx: AuthContext,
  login: EmailLoginRecord,
  client: LoginClient,
  { returnTo }: ConfirmingEmailLogin,
): Promise<ConfirmedEmailLogin> {
  return transaction(ctx, async (ctx) => {
    await consume(ctx, login)
    const inserted = await ctx.store.users.insert(newAccount(ctx, login.email), { by: 'email_login' })
    await ctx.signup.onSignup?.(inserted, {}, ctx.store, { trx: transactionOf(ctx.store), isRepeat: false })
    // The account is read again, because the hook may have changed the account.
    const user = ctx.signup.onSignup ? await ctx.store.users.lock(inserted.id) : inserted
    if (!user) throw new InternalError({ cause: new Error('onSignup removed the account.') })
    const begun = user.isActive ? await startLogin(ctx, client, user, loginOf(returnTo)) : null
    return { user, begun, did: 'signed_up', takenOver: null }
  })
}

function newAccount(ctx: AuthContext, email: string): NewUser {
  const now = ctx.now()
  return newUser(now, { email, name: null, hashedPassword: unusablePassword(), lastLoginAt: now, emailVerifiedAt: now })
}
