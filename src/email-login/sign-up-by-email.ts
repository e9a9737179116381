import { type AuthContext, unitOfWork } from '../context'
import { InternalError } from '../errors'
import { unusablePassword } from '../passwords/unusable-password'
import { finishOrPostpone } from '../session/claims-of-login'
import type { OpenedSession, OpenSession } from '../session/finish-login'
import type { EmailLoginRecord, NewUser } from '../store/auth-store'
import { transactionOf } from '../store/knex/knex-store'
import { newUser } from '../store/new-user'
import type { ConfirmedEmailLogin, Confirming } from './confirm-email-login'
import { loginOf, spend } from './log-in-by-email'

/**
 * Creates an active account with a verified address for an address that has none. If the host's `onSignup` throws, there is no account
 * and the login stays unused.
 * An account that the hook made inactive stays, and no session begins on it.
 * @throws EmailLoginInvalidError where another confirmation was first; DuplicateRecordError where somebody took the address at this moment
 */
export function signUpByEmail<Session extends OpenedSession>(
  ctx: AuthContext,
  login: EmailLoginRecord,
  open: OpenSession<Session>,
  { returnTo }: Confirming,
): Promise<ConfirmedEmailLogin<Session>> {
  return unitOfWork(ctx, async (ctx) => {
    await spend(ctx, login)
    const inserted = await ctx.store.users.insert(newAccount(ctx, login.email), { by: 'email_login' })
    await ctx.signup.onSignup?.(inserted, {}, ctx.store, { trx: transactionOf(ctx.store), isRepeat: false })
    // The hook may have changed the account, and then it decides.
    const user = ctx.signup.onSignup ? await ctx.store.users.lock(inserted.id) : inserted
    if (!user) throw new InternalError({ cause: new Error('onSignup removed the account.') })
    const ended = user.isActive ? await finishOrPostpone(ctx, user, loginOf(returnTo), open) : null
    return { user, ended, did: 'signed_up', takenOver: null }
  })
}

function newAccount(ctx: AuthContext, email: string): NewUser {
  const now = ctx.now()
  return newUser(now, { email, name: null, hashedPassword: unusablePassword(), lastLoginAt: now, emailVerifiedAt: now })
}
