import type { AuthContext } from '../../context'
import { AppError, EmailLoginInvalidError, InvitationRequiredError } from '../../core/errors'
import { hashOpaqueToken, isOpaqueToken } from '../../core/opaque-token'
import type { Locale } from '../../http/locale'
import { mayProve } from '../../sessions/account-state'
import { announceFailedLogin } from '../../sessions/devices/login-limits'
import type { AnyLoginResult, LoginClient } from '../../sessions/login'
import { finishLogin } from '../../sessions/start-login'
import { DuplicateRecordError, type EmailLoginRecord, type UserRecord } from '../../store/auth-store'
import { findByAddress, isCodeOf, mostTries, refusesEmailLink } from '../email-links/email-link'
import { isLoginRow } from '../email-links/issue-email-login'
import { giveBackSignupMail } from '../email-links/signup-mails'
import { PasswordAskedError, type SignupOwnership, wantsPassword } from '../email-verification/signup-ownership'
import { announceSignupPasskey } from '../email-verification/signup-passkey'
import { isFirstVerification, mayActivate, signupOf } from '../email-verification/verify-address'
import { announceActivation } from '../first-activation'
import { countCode } from '../mailed-codes/code-limit'
import { announceTakeOver } from '../take-over'
import { type ConfirmedEmailLogin, type ConfirmingEmailLogin, type ConfirmOptions, logInByEmail, signUpByEmail } from './log-in-by-email'
import { maySignUp, requireEmailLogins } from './request-email-login'

/** `requestId` is null if the client did not send it. */
export type EmailLoginProof = { readonly token: string } | { readonly code: string; readonly requestId: string | null }

const rounds = 3

/**
 * Activates a pending account. Creates one for an address without an account, if `emailLoginSignup` is on. The first verification without
 * evidence of the owner takes the account over (`accounts/take-over.ts`).
 * @throws EmailLoginInvalidError for any fault; InvalidCredentialsError for a wrong password (the link and the code stay unused)
 */
export async function confirmEmailLogin(
  ctx: AuthContext,
  proof: EmailLoginProof,
  client: LoginClient,
  options: ConfirmOptions,
): Promise<AnyLoginResult> {
  const { attempt, locale } = options
  try {
    const login = await findLogin(ctx, proof)
    attempt.email = login.email
    const returnTo = (login.id === options.browserRequestId && login.returnTo) || (options.elsewhere ?? null)
    const confirmed = await confirmInRounds(ctx, login, client, { ...options, returnTo }).catch(async (error: unknown) => {
      if ('code' in proof && error instanceof InvitationRequiredError) await requireEmailLogins(ctx).uncountTry?.(login.id) // it was right
      throw error
    })
    if (confirmed.verifies) await giveBackSignupMail(ctx, login.createdAt)
    announce(ctx, confirmed, locale)
    if (!confirmed.begun) throw new EmailLoginInvalidError()
    const result = await finishLogin(ctx, confirmed.begun)
    return returnTo === null || result.kind !== 'session' ? result : { ...result, returnTo }
  } catch (error) {
    if (error instanceof AppError && !(error instanceof PasswordAskedError)) announceFailedLogin(ctx, attempt, { reason: error.code })
    throw error
  }
}

/** What a link's page shows before the person decides. Does not use the link. @throws EmailLoginInvalidError */
export async function lookAtEmailLogin(
  ctx: AuthContext,
  token: string,
  evidence: SignupOwnership,
): Promise<{ login: EmailLoginRecord; asksPassword: boolean }> {
  const login = await findByToken(ctx, token)
  const user = await findByAddress(ctx, login.email)
  if (!user) {
    if (await maySignUp(ctx, login.email)) return { login, asksPassword: false }
    throw new EmailLoginInvalidError()
  }
  if (!(await mayLogIn(ctx, user))) throw new EmailLoginInvalidError()
  const asksPassword =
    isFirstVerification(ctx, user, !mayProve(user)) && (await wantsPassword(ctx, user, evidence, await signupOf(ctx, user)))
  return { login, asksPassword }
}

async function mayLogIn(ctx: AuthContext, user: UserRecord): Promise<boolean> {
  return mayProve(user) ? !(await refusesEmailLink(ctx, user)) : mayActivate(ctx, user)
}

function findLogin(ctx: AuthContext, proof: EmailLoginProof): Promise<EmailLoginRecord> {
  return 'token' in proof ? findByToken(ctx, proof.token) : findByCode(ctx, proof.code, proof.requestId)
}

async function findByToken(ctx: AuthContext, token: string): Promise<EmailLoginRecord> {
  const login = isOpaqueToken(token) ? await requireEmailLogins(ctx).find({ tokenHash: hashOpaqueToken(token) }) : null
  if (!login || login.usedAt !== null || login.expiresAt <= ctx.now() || !isLoginRow(login)) throw new EmailLoginInvalidError()
  return login
}

/** Counts the try before it compares the code: at most five are compared, even in parallel. @throws EmailLoginInvalidError */
async function findByCode(ctx: AuthContext, code: string, requestId: string | null): Promise<EmailLoginRecord> {
  const login = requestId === null ? null : await requireEmailLogins(ctx).countTry(requestId, mostTries, ctx.now())
  if (!login || !isLoginRow(login)) throw new EmailLoginInvalidError()
  const counted = hasLimitedCode(ctx, login) ? await countCode(ctx, login) : unlimited
  if (!counted || !isCodeOf(ctx, login, code)) throw new EmailLoginInvalidError()
  await counted.release()
  return login
}

const unlimited = { release: async () => undefined }

/** A mail with a code alone has no other way in, so its codes have no limit beyond their tries. */
function hasLimitedCode({ settings }: AuthContext, { tokenHash }: EmailLoginRecord): boolean {
  return settings.mailedCodes === 'both' && tokenHash !== null
}

/** Tries again if the account changed or was created between our read and our write. */
async function confirmInRounds(
  ctx: AuthContext,
  login: EmailLoginRecord,
  client: LoginClient,
  confirming: ConfirmingEmailLogin,
): Promise<ConfirmedEmailLogin> {
  for (let round = 1; round <= rounds; round++) {
    const user = await findByAddress(ctx, login.email)
    confirming.attempt.userId = user?.id ?? null
    if (user && !(await mayLogIn(ctx, user))) break
    if (!user && !(await maySignUp(ctx, login.email))) break
    const confirmed = user
      ? await logInByEmail(ctx, { login, seen: user }, client, confirming)
      : await unlessTaken(() => signUpByEmail(ctx, login, client, confirming))
    if (confirmed) return confirmed
  }
  throw new EmailLoginInvalidError()
}

/** Null if another request created an account with the address meanwhile. */
async function unlessTaken<T>(signUp: () => Promise<T>): Promise<T | null> {
  try {
    return await signUp()
  } catch (error) {
    if (error instanceof DuplicateRecordError) return null
    throw error
  }
}

function announce(ctx: AuthContext, { user, did, takenOver, passkey = null }: ConfirmedEmailLogin, locale: Locale | undefined): void {
  if (did !== 'logged_in') announceActivation(ctx, user, locale)
  announceSignupPasskey(ctx, user, passkey, locale)
  if (takenOver) announceTakeOver(ctx, user, takenOver, { locale })
}
