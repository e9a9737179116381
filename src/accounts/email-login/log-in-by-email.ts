import { type AuthContext, transaction } from '../../context'
import { EmailLoginInvalidError, InternalError } from '../../core/errors'
import type { Locale } from '../../http/locale'
import { invitationOfLogin } from '../../invitations/invitation'
import { againAfterRace } from '../../passkeys/verify-passkey'
import { unusablePassword } from '../../passwords/verify-password'
import { mayProve } from '../../sessions/account-state'
import type { LoginAttempt } from '../../sessions/devices/login-limits'
import type { Login, LoginClient } from '../../sessions/login'
import { type BegunLogin, startLogin } from '../../sessions/start-login'
import type { EmailLoginRecord, NewUser, UserRecord } from '../../store/auth-store'
import { transactionOf } from '../../store/knex/knex-store'
import { newUser } from '../../store/user-records'
import { type SignupOwnership, type VerifiedSignupOwnership, verifySignupOwnership } from '../email-verification/signup-ownership'
import type { SignupPasskeyEnd } from '../email-verification/signup-passkey'
import {
  activating,
  isFirstVerification,
  lockForProof,
  type ProofOptions,
  retryingWithoutFields,
  signupOf,
  verifyAddress,
} from '../email-verification/verify-address'
import { completeFirstActivation, firstActivation } from '../first-activation'
import { type Clearing, loginAfter, type TakenOver } from '../take-over'
import { requireEmailLogins } from './request-email-login'

export interface ConfirmOptions {
  /** Used only at the first verification of the address. */
  readonly evidence?: SignupOwnership | undefined
  /** Language of mails. Default: `defaultLocale`. */
  readonly locale?: Locale | undefined
  /** Only the browser that requested the mail is redirected to `return_to`. */
  readonly browserRequestId?: string | null
  /** For other browsers. */
  readonly elsewhere?: string
  /** For the event of a failed login. `confirmEmailLogin` adds the address and the account. */
  readonly attempt: LoginAttempt
}

export interface ConfirmingEmailLogin extends ConfirmOptions {
  readonly returnTo: string | null
}

export interface ConfirmedEmailLogin {
  readonly user: UserRecord
  /** Null if the host's hook made the new account inactive. */
  readonly begun: BegunLogin | null
  readonly did: 'logged_in' | 'activated' | 'signed_up'
  readonly takenOver: TakenOver | null
  /** For the first time, the address. */
  readonly verifies?: true
  /** Of the sign-up that the login activates. */
  readonly passkey?: SignupPasskeyEnd
}

interface Matching {
  readonly login: EmailLoginRecord
  readonly seen: UserRecord
}

/** Activates a pending account. Null if the account changed since the caller read it. */
export async function logInByEmail(
  ctx: AuthContext,
  { login, seen }: Matching,
  client: LoginClient,
  { evidence = {}, returnTo }: ConfirmingEmailLogin,
): Promise<ConfirmedEmailLogin | null> {
  const how = loginOf(returnTo)
  if (isFirstVerification(ctx, seen, !mayProve(seen))) {
    const weighed = await verifySignupOwnership(ctx, seen, evidence, await signupOf(ctx, seen))
    return againAfterRace(() =>
      retryingWithoutFields(ctx, (clearing) => verifyAndLogIn(ctx, { login, seen }, client, { weighed, clearing, how })),
    )
  }
  return transaction(ctx, async (ctx) => {
    const user = await lockForProof(ctx, seen, login.email)
    if (!user) return null
    await consume(ctx, login)
    const stamp = user.isActive ? { lastLoginAt: ctx.now() } : {}
    if (user.isActive) await ctx.store.users.update(user.id, stamp)
    const now = { ...user, ...stamp }
    return { user: now, begun: await startLogin(ctx, client, now, how), did: 'logged_in', takenOver: null }
  })
}

function loginOf(returnTo: string | null): Login {
  return { amr: ['email'], provider: null, destination: returnTo === null ? null : { returnTo } }
}

/** Only one of many confirmations by link or code succeeds. @throws EmailLoginInvalidError */
async function consume(ctx: AuthContext, { id }: EmailLoginRecord): Promise<void> {
  if (!(await requireEmailLogins(ctx).consume(id, ctx.now()))) throw new EmailLoginInvalidError()
}

interface FirstVerification {
  readonly weighed: VerifiedSignupOwnership
  readonly clearing: Clearing
  readonly how: Login
}

function verifyAndLogIn(
  ctx: AuthContext,
  { login, seen }: Matching,
  client: LoginClient,
  { weighed, clearing, how }: FirstVerification,
): Promise<ConfirmedEmailLogin | null> {
  const isActivation = !mayProve(seen)
  return transaction(ctx, async (ctx) => {
    const locked = await lockForProof(ctx, seen, login.email)
    if (!locked) return null
    await consume(ctx, login)
    const activation: ProofOptions = isActivation ? await activating(ctx, locked, clearing) : {}
    const invitation = login.invitationId ?? activation.invitation ?? null
    const { isApproved } = activation
    const isOpen = isActivation ? firstActivation(ctx, { isApproved, invitation }).isActive : locked.isActive
    const { user, takenOver, passkey } = await verifyAddress(ctx, locked, weighed, {
      ...activation,
      isActivation,
      invitation,
      changes: isOpen ? { lastLoginAt: ctx.now() } : {},
    })
    const begun = await startLogin(ctx, client, user, { ...how, ...loginAfter(ctx, takenOver) })
    return { user, begun, did: isActivation ? 'activated' : 'logged_in', takenOver, verifies: true, passkey }
  })
}

/**
 * If `onSignup` throws, no account is created and the login stays unused. If it makes the account inactive, no session begins.
 * @throws EmailLoginInvalidError if another confirmation was first; DuplicateRecordError if another request created the account meanwhile
 */
export async function signUpByEmail(
  ctx: AuthContext,
  login: EmailLoginRecord,
  client: LoginClient,
  { returnTo }: ConfirmingEmailLogin,
): Promise<ConfirmedEmailLogin> {
  const invitation = await invitationOf(ctx, login)
  return transaction(ctx, async (ctx) => {
    await consume(ctx, login)
    const inserted = await ctx.store.users.insert(newAccount(ctx, login.email, invitation), { by: 'email_login' })
    await ctx.signup.onSignup?.(inserted, {}, ctx.store, { trx: transactionOf(ctx.store), isRepeat: false })
    // The hook may have changed the account.
    const user = ctx.signup.onSignup ? await ctx.store.users.lock(inserted.id) : inserted
    if (!user) throw new InternalError({ cause: new Error('onSignup removed the account.') })
    ctx.events.emit('signup', { userId: user.id, by: 'email' })
    if (mayProve(user)) await completeFirstActivation(ctx, user, invitation, { isNew: true })
    const begun = mayProve(user) ? await startLogin(ctx, client, user, loginOf(returnTo)) : null
    return { user, begun, did: 'signed_up', takenOver: null, verifies: true }
  })
}

/** The request has checked the invitation of its row. Without one, the mode or the invitations may have changed since. */
async function invitationOf(ctx: AuthContext, { email, invitationId = null }: EmailLoginRecord): Promise<string | null> {
  if (invitationId !== null) return invitationId
  return (await invitationOfLogin(ctx, null, { email, isVerified: true, isPending: false }))?.id ?? null
}

function newAccount(ctx: AuthContext, email: string, invitation: string | null): NewUser {
  const now = ctx.now()
  const activation = firstActivation(ctx, { invitation })
  const lastLoginAt = activation.isActive ? now : null
  return newUser(now, { email, name: null, hashedPassword: unusablePassword(), lastLoginAt, emailVerifiedAt: now, ...activation })
}
