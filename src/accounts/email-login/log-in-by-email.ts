import { type AuthContext, transaction } from '../../context'
import { EmailLoginInvalidError } from '../../core/errors'
import type { Locale } from '../../http/locale'
import type { LoginAttempt } from '../../sessions/announce-failed-login'
import type { Login, LoginClient } from '../../sessions/login'
import { type BegunLogin, startLogin } from '../../sessions/start-login'
import type { EmailLoginRecord, UserRecord } from '../../store/auth-store'
import { activating, lockForProof, signupOf } from '../email-verification/activate-by-verification'
import { retryingWithoutFields } from '../email-verification/retrying-without-fields'
import { type SignupOwnership, type VerifiedSignupOwnership, verifySignupOwnership } from '../email-verification/signup-ownership'
import { isFirstVerification, verifyAddress } from '../email-verification/verify-address'
import type { Clearing, TakenOver } from '../take-over'
import { requireEmailLogins } from './request-email-login'

export interface ConfirmOptions {
  /** The facts that identify the account's owner. Used only at the first verification of the address. */
  readonly evidence?: SignupOwnership | undefined
  /** Language of mails. Default: `defaultLocale`. */
  readonly locale?: Locale | undefined
  /** The id of the login request that this browser made. Only the browser that requested the mail is redirected to `return_to`. */
  readonly browserRequestId?: string | null
  /** The redirect target for other browsers. */
  readonly elsewhere?: string
  /** The facts for the event of a failed login. `confirmEmailLogin` adds the address and the account. */
  readonly attempt: LoginAttempt
}

export interface ConfirmingEmailLogin extends ConfirmOptions {
  /** The redirect target for this browser. Null if there is no target. */
  readonly returnTo: string | null
}

/** The result of a confirmation inside its transaction. */
export interface ConfirmedEmailLogin {
  readonly user: UserRecord
  /** Null if the host's hook made the new account inactive. */
  readonly begun: BegunLogin | null
  readonly did: 'logged_in' | 'activated' | 'signed_up'
  readonly takenOver: TakenOver | null
}

interface Matching {
  readonly login: EmailLoginRecord
  /** The account that has the address. */
  readonly seen: UserRecord
}

/**
 * Logs in to an account. If the account is pending, the function activates the account. Returns null if the account changed since the
 * caller read it.
 */
export async function logInByEmail(
  ctx: AuthContext,
  { login, seen }: Matching,
  client: LoginClient,
  { evidence = {}, returnTo }: ConfirmingEmailLogin,
): Promise<ConfirmedEmailLogin | null> {
  const how = loginOf(returnTo)
  if (isFirstVerification(ctx, seen, !seen.isActive)) {
    const weighed = await verifySignupOwnership(ctx, seen, evidence, await signupOf(ctx, seen))
    return retryingWithoutFields(ctx, (clearing) => verifyAndLogIn(ctx, { login, seen }, client, { weighed, clearing, how }))
  }
  return transaction(ctx, async (ctx) => {
    const user = await lockForProof(ctx, seen, login.email)
    if (!user) return null
    await consume(ctx, login)
    const lastLoginAt = ctx.now()
    await ctx.store.users.update(user.id, { lastLoginAt })
    const now = { ...user, lastLoginAt }
    return { user: now, begun: await startLogin(ctx, client, now, how), did: 'logged_in', takenOver: null }
  })
}

export function loginOf(returnTo: string | null): Login {
  return { amr: ['email'], provider: null, destination: returnTo === null ? null : { returnTo } }
}

/**
 * Marks the login as used, so that only one of many confirmations by link or code succeeds.
 * @throws EmailLoginInvalidError
 */
export async function consume(ctx: AuthContext, { id }: EmailLoginRecord): Promise<void> {
  if (!(await requireEmailLogins(ctx).consume(id, ctx.now()))) throw new EmailLoginInvalidError()
}

interface FirstVerification {
  readonly weighed: VerifiedSignupOwnership
  readonly clearing: Clearing
  readonly how: Login
}

/** Verifies the address for the first time, and logs in. */
function verifyAndLogIn(
  ctx: AuthContext,
  { login, seen }: Matching,
  client: LoginClient,
  { weighed, clearing, how }: FirstVerification,
): Promise<ConfirmedEmailLogin | null> {
  const isActivation = !seen.isActive
  return transaction(ctx, async (ctx) => {
    const locked = await lockForProof(ctx, seen, login.email)
    if (!locked) return null
    await consume(ctx, login)
    const { changes = {}, ...activation } = isActivation ? await activating(ctx, locked, clearing) : {}
    const { user, takenOver } = await verifyAddress(ctx, locked, weighed, {
      ...activation,
      isActivation,
      changes: { ...changes, lastLoginAt: ctx.now() },
    })
    return { user, begun: await startLogin(ctx, client, user, how), did: isActivation ? 'activated' : 'logged_in', takenOver }
  })
}
