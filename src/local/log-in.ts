import { type AuthContext, unitOfWork } from '../context'
import { AppError, InvalidCredentialsError, LoginThrottledError } from '../errors'
import { requireEmail } from '../http/email-address'
import { takeUnits } from '../limits/take-unit'
import { describeError } from '../logger'
import { verifyPassword } from '../passwords/verify-password'
import { announceLogin } from '../session/announce-login'
import { finishLogin, type LoginChallenge, type OpenedSession, type OpenSession } from '../session/finish-login'
import type { UserRecord } from '../store/auth-store'

export interface LoginInput {
  email: string
  password: string
  /** `clientKey` of whoever asks; left out: only the address is counted. */
  client?: string | undefined
}

/**
 * Email and password into a session or a challenge. A wrong password, an unknown address and an inactive account are one
 * refusal, after the same work. Both budgets are taken before the password is looked at; they are the same whatever the
 * login opens, a token pair or a server-side session.
 * @throws InvalidCredentialsError, LoginThrottledError, ServiceUnavailableError (too many passwords waiting)
 */
export async function logIn<Session extends OpenedSession>(
  ctx: AuthContext,
  input: LoginInput,
  open: OpenSession<Session>,
): Promise<Session | LoginChallenge> {
  const email = requireEmail(input.email)
  const taken = await takeUnits(ctx, ctx.budgets.login, { name: 'login', email, client: input.client ?? null }, LoginThrottledError)
  try {
    const result = await checkPasswordAndLogIn(ctx, { email, password: input.password }, open)
    await Promise.all([taken.email.clear(), taken.client?.giveBack()])
    announceLogin(ctx, result)
    return result
  } catch (error) {
    // Busy or broken is not a failed guess.
    if (!(error instanceof InvalidCredentialsError)) await Promise.all([taken.email.giveBack(), taken.client?.giveBack()])
    if (error instanceof AppError) ctx.events.emit('login.failed', { reason: error.code })
    throw error
  }
}

/** Another login may store a better hash of the same password between our look and our write: then we look again, once. */
async function checkPasswordAndLogIn<Session extends OpenedSession>(
  ctx: AuthContext,
  { email, password }: LoginInput,
  open: OpenSession<Session>,
): Promise<Session | LoginChallenge> {
  for (let round = 1; round <= 2; round++) {
    const user = await ctx.store.users.findByEmail(email)
    const { matches, needsRehash } = await verifyPassword(ctx, user?.hashedPassword ?? null, password)
    if (!user?.isActive || !matches) break
    const result = await logInAsSeen(ctx, user, needsRehash ? await rehash(ctx, password) : null, open)
    if (result) return result
  }
  throw new InvalidCredentialsError()
}

/** Null when the account was deactivated, or has another password, since it was looked at. */
function logInAsSeen<Session extends OpenedSession>(
  ctx: AuthContext,
  seen: UserRecord,
  rehashed: string | null,
  open: OpenSession<Session>,
): Promise<Session | LoginChallenge | null> {
  return unitOfWork(ctx, async (ctx) => {
    const user = await ctx.store.users.recordLogin(seen, ctx.now(), rehashed === null ? {} : { hashedPassword: rehashed })
    return user && finishLogin(ctx, user, { amr: ['pwd'], provider: null }, open)
  })
}

/** A better hash is worth having, never worth a login. */
async function rehash(ctx: AuthContext, password: string): Promise<string | null> {
  try {
    return await ctx.hasher.hash(password)
  } catch (error) {
    ctx.logger.warn({ error: describeError(error) }, 'doorward: a password could not be hashed again; the old hash stays')
    return null
  }
}
