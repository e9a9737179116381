import type { AuthMethod } from '../amr'
import { type AuthContext, unitOfWork } from '../context'
import { MfaCodeInvalidError, MfaNotEnrolledError, UnauthorizedError } from '../errors'
import type { Locale } from '../http/locale'
import { mailNotice } from '../mailbox/send-mail'
import { announceLogin } from '../session/announce-login'
import { finishLogin, type LoginResult, type OpenSession, type TokenPair } from '../session/finish-login'
import { endOtherSessions } from '../session/log-out'
import type { UserRecord } from '../store/auth-store'
import type { UserCheck } from './enroll'
import { guardedAttempt } from './guarded-attempt'
import { acceptTotpCode } from './second-factor'

export interface Confirmation {
  userId: string
  code: string
  /** How the session that asks began; `otp` is added. */
  amr?: readonly AuthMethod[] | undefined
  /** Ends every session of the account, which began without the factor. Default true. */
  revokeSessions?: boolean | undefined
  /** Of the notices. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * A code of the pending secret makes the factor active: from here every login asks for it. Every session ends by default,
 * and so does every challenge; the answer is a new pair.
 * @throws MfaNotEnrolledError (nothing pending), MfaCodeInvalidError, MfaThrottledError, UnauthorizedError (the account is gone or inactive)
 */
export async function confirmTotp(
  ctx: AuthContext,
  { userId, code, amr = [], revokeSessions = true, locale }: Confirmation,
  open: OpenSession<TokenPair>,
  check: UserCheck = () => undefined,
): Promise<LoginResult> {
  const confirm = () =>
    unitOfWork(ctx, async (ctx) => {
      const user = await activate(ctx, await ctx.store.users.lock(userId), code, check)
      if (revokeSessions) await endOtherSessions(ctx, userId)
      return { user, result: await finishLogin(ctx, user, { amr: [...new Set<AuthMethod>([...amr, 'otp'])], provider: null }, open) }
    })
  // A pending secret may be somebody else's, left behind in a session that was stolen: it is not guessed at either.
  const { user, result } = await guardedAttempt(ctx, userId, confirm, 'mfa_confirm:account')
  ctx.events.emit('mfa.enrolled', { userId })
  announceLogin(ctx, result)
  mailNotice(ctx, user, 'mfa_enabled', locale)
  return result
}

/** The row is held: the secret that is confirmed is the one that is active afterwards. */
async function activate(ctx: AuthContext, user: UserRecord | null, code: string, check: UserCheck): Promise<UserRecord> {
  if (!user?.isActive) throw new UnauthorizedError()
  if (user.totpEnabledAt || user.totpSecret === null) throw new MfaNotEnrolledError()
  await check(ctx, user)
  if (!(await acceptTotpCode(ctx, user, code))) throw new MfaCodeInvalidError()
  const now = ctx.now()
  await ctx.store.users.update(user.id, { totpEnabledAt: now, updatedAt: now })
  return { ...user, totpEnabledAt: now, updatedAt: now }
}
