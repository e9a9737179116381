import { type AuthContext, transaction } from '../context'
import { EmailLinkForbiddenError, InvalidTokenError } from '../core/errors'
import type { Locale } from '../http/locale'
import { checkPassword } from '../passwords/check-password'
import { hashPassword, newPasswordChanges } from '../passwords/verify-password'
import { forgetWrongCodes } from '../second-factor/code-limits'
import { endOtherSessions } from '../sessions/log-out'
import type { AnyLoginResult, LoginClient } from '../sessions/login'
import { finishLogin, startLogin } from '../sessions/start-login'
import type { UserRecord, UserTokenRecord } from '../store/auth-store'
import { distrust } from '../trusted-devices/distrust'
import { consumeLink, findLink, type LinkProof, refuseLink, refusesEmailLink } from './email-links/email-link'
import { endOneShots } from './email-links/issue-email-login'
import { mailNotice } from './email-links/send-mail'
import { giveBackSignupMail } from './email-links/signup-mails'
import { type SignupOwnership, type VerifiedSignupOwnership, verifySignupOwnership } from './email-verification/signup-ownership'
import { isFirstVerification, verifyAddress } from './email-verification/verify-address'
import type { CodeProof } from './mailed-codes/redeem-code'
import { announceTakeOver, type TakenOver } from './take-over'

export interface ResetInput {
  /** Of the mailed link. */
  token: string
  newPassword: string
  /** Revokes every session of the account. Default true. */
  revokeSessions?: boolean | undefined
  /** The language of the notice. Default: `defaultLocale`. */
  locale?: Locale | undefined
  /** If nobody has verified the address before, `evidence` shows whether the person created the account. */
  evidence?: SignupOwnership | undefined
}

/** By the token of the mailed link, or by its code. */
export type ResetByHost = ResetInput | (Omit<ResetInput, 'token'> & CodeProof)

/** `token`: of the link, or what its code shows. */
export type Reset = Omit<ResetInput, 'token'> & { token: LinkProof }

/**
 * Sets the password, verifies the address, and revokes sessions and links. If the policy rejects the password, the link stays valid.
 * @throws InvalidTokenError, ValidationError, InvalidCredentialsError (the old password); EmailLinkForbiddenError, which invalidates the
 * link
 */
export async function resetPassword(ctx: AuthContext, input: Reset, client: LoginClient): Promise<AnyLoginResult> {
  const login = { amr: ['email'], provider: null, isReset: true } as const
  const ended = await resetAnd(ctx, input, (ctx, user) => startLogin(ctx, client, user, login))
  const result = await finishLogin(ctx, ended)
  return result
}

/** For a page that sets no session cookies. */
export async function resetOnly(ctx: AuthContext, input: Reset): Promise<void> {
  await resetAnd(ctx, input, async () => undefined)
}

/** What the link's page shows before the person decides. The link stays valid. @throws the same errors as `resetPassword` */
export async function lookAtReset(ctx: AuthContext, token: LinkProof): Promise<{ email: string }> {
  const { user, isRefused } = await findLinkAndUser(ctx, token)
  if (isRefused) throw new EmailLinkForbiddenError()
  requireActive(user)
  return { email: user.email }
}

type Ending<T> = (ctx: AuthContext, user: UserRecord) => Promise<T>

async function resetAnd<T>(ctx: AuthContext, input: Reset, end: Ending<T>): Promise<T> {
  const { token, newPassword, revokeSessions = true, locale, evidence = {} } = input
  const { link, user: seen, isRefused } = await findLinkAndUser(ctx, token)
  // First, so that the error for a forbidden link reveals nothing about the account or the password.
  if (isRefused) return refuseLink(ctx, link, 'PASSWORD_RESET')
  requireActive(seen)
  await checkPassword(ctx, newPassword, seen)
  const weighed = isFirstVerification(ctx, seen) ? await verifySignupOwnership(ctx, seen, evidence) : { verifiedHash: null }
  const hashedPassword = await hashPassword(ctx, newPassword)
  const { user, ended, takenOver } = await redeem(ctx, link, { hashedPassword, revokeSessions, evidence: weighed }, end)
  await forgetWrongCodes(ctx, user.id)
  if (isFirstVerification(ctx, seen)) await giveBackSignupMail(ctx, link.createdAt)
  // One mail: the notice of a new password, or the list of what a take-over removed besides the password and the sessions.
  const more = takenOver?.removed.filter(({ kind }) => kind !== 'password' && kind !== 'sessions') ?? []
  const isMore = more.length > 0 || (takenOver?.kept ?? null) !== null
  if (takenOver) announceTakeOver(ctx, user, { ...takenOver, removed: isMore ? takenOver.removed : [] }, { locale })
  if (!isMore) mailNotice(ctx, user, 'password_changed', locale)
  return ended
}

async function findLinkAndUser(
  ctx: AuthContext,
  token: LinkProof,
): Promise<{ link: UserTokenRecord; user: UserRecord; isRefused: boolean }> {
  const link = await findLink(ctx, token, 'PASSWORD_RESET')
  const user = await ctx.store.users.find(link.userId)
  if (!user) throw new InvalidTokenError()
  return { link, user, isRefused: await refusesEmailLink(ctx, user) }
}

function requireActive({ isActive }: UserRecord): void {
  if (!isActive) throw new InvalidTokenError()
}

interface Redeemed<T> {
  user: UserRecord
  ended: T
  takenOver: TakenOver | null
}

function redeem<T>(
  ctx: AuthContext,
  link: UserTokenRecord,
  { hashedPassword, revokeSessions, evidence }: { hashedPassword: string; revokeSessions: boolean; evidence: VerifiedSignupOwnership },
  end: Ending<T>,
): Promise<Redeemed<T>> {
  return transaction(ctx, async (ctx) => {
    const now = ctx.now()
    const locked = await ctx.store.users.lock(link.userId)
    if (!locked?.isActive) throw new InvalidTokenError()
    await consumeLink(ctx, link, 'PASSWORD_RESET')
    // Before the sessions are revoked, because one can be the evidence that the person created the account.
    ctx.events.emit('password.changed', { userId: locked.id, by: 'reset' })
    const { user, takenOver } = await verifyAddress(ctx, locked, evidence, { changes: newPasswordChanges(ctx, hashedPassword, now) })
    // Links of every kind: otherwise an attacker's pending change of address would stay valid after the owner's reset.
    await endOneShots(ctx, locked)
    await (revokeSessions ? endOtherSessions(ctx, locked.id) : distrust(ctx, locked.id, { reason: 'account_changed' }))
    return { user, ended: await end(ctx, user), takenOver }
  })
}
