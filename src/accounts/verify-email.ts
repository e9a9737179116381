import { type AuthContext, transaction } from '../context'
import { hasPasswords } from '../core/config/every-setting'
import { EmailLinkForbiddenError, InvalidTokenError } from '../core/errors'
import type { Locale } from '../http/locale'
import type { KnownDevice } from '../sessions/devices/device-cookie'
import { isSessionHeld } from '../sessions/reauthentication/fresh-session'
import type { SessionRecord, UserRecord, UserTokenRecord } from '../store/auth-store'
import { consumeLink, findLink, issueLink, type LinkProof, type LinkToken, refuseLink, refusesEmailLink } from './email-links/email-link'
import { mailLink, mayMail } from './email-links/send-mail'
import {
  type SignupOwnership,
  type VerifiedSignupOwnership,
  verifySignupOwnership,
  wantsPassword,
} from './email-verification/signup-ownership'
import { isFirstVerification, verifyAddress } from './email-verification/verify-address'
import type { CodeRequest } from './mailed-codes/code-request'
import { codeIssuer, replaceLinkAndCode } from './mailed-codes/issue-code'
import { announceTakeOver, newPasswordSeconds, type TakenOver } from './take-over'

/** The link verifies only the account's own address. Null if no link was made. @param options.session if it has ended, no mail is sent */
export async function sendEmailVerification(
  ctx: AuthContext,
  user: UserRecord,
  locale: Locale,
  { device = null, session, code }: { device?: KnownDevice | null; session?: SessionRecord | null; code?: CodeRequest | null } = {},
): Promise<LinkToken | null> {
  if ((await refusesEmailLink(ctx, user)) || !(await mayMail(ctx, user, 'EMAIL_VERIFICATION', { device }))) return null
  const issuer = await codeIssuer(ctx, code, { email: user.email, isKnownDevice: device !== null })
  const issued = await transaction(ctx, async (ctx) => {
    const locked = await ctx.store.users.lock(user.id)
    if (!isStill(locked, user.email) || !(await isSessionHeld(ctx, session))) return null
    return replaceLinkAndCode(ctx, locked, { purpose: 'EMAIL_VERIFICATION', payload: user.email }, issuer)
  })
  if (!issued) return null
  mailLink(ctx, user, 'email_verification', issued.link, locale, { code: issued.code })
  return issued.link
}

export interface VerificationResult {
  /** True if the first verification of the address took the account over. The account then has no password. */
  passwordRequired: boolean
  /** A link to choose a password, like the link of a reset mail. Null if the account needs no new password, or if passwords are off. */
  resetLink: LinkToken | null
}

/**
 * The first verification without evidence of the owner takes the account over, which removes what an attacker may have added.
 * @throws InvalidTokenError, also for a changed address or an inactive account; InvalidCredentialsError; EmailLinkForbiddenError (uses it
 * up)
 */
export async function confirmEmail(
  ctx: AuthContext,
  proof: LinkProof,
  { evidence = {}, locale }: { evidence?: SignupOwnership; locale?: Locale } = {},
): Promise<VerificationResult> {
  const { link, user: seen, isRefused } = await findLinkAndUser(ctx, proof)
  if (isRefused) return refuseLink(ctx, link, 'EMAIL_VERIFICATION')
  if (!isStill(seen, link.payload)) throw new InvalidTokenError()
  const weighed = isFirstVerification(ctx, seen) ? await verifySignupOwnership(ctx, seen, evidence) : { verifiedHash: null }
  const { user, takenOver, resetLink } = await redeem(ctx, link, weighed)
  if (takenOver) announceTakeOver(ctx, user, takenOver, { locale })
  return { passwordRequired: resetLink !== null, resetLink }
}

/** True if the page must ask for the password. Does not use the link. @throws the errors of `confirmEmail` */
export async function lookAtVerification(ctx: AuthContext, proof: LinkProof, evidence: SignupOwnership = {}): Promise<boolean> {
  const { link, user, isRefused } = await findLinkAndUser(ctx, proof)
  if (isRefused) throw new EmailLinkForbiddenError()
  if (!isStill(user, link.payload)) throw new InvalidTokenError()
  return hasPasswords(ctx.settings) && isFirstVerification(ctx, user) && wantsPassword(ctx, user, evidence)
}

async function findLinkAndUser(
  ctx: AuthContext,
  proof: LinkProof,
): Promise<{ link: UserTokenRecord; user: UserRecord; isRefused: boolean }> {
  const link = await findLink(ctx, proof, 'EMAIL_VERIFICATION')
  const user = await ctx.store.users.find(link.userId)
  if (!user) throw new InvalidTokenError()
  return { link, user, isRefused: await refusesEmailLink(ctx, user) }
}

interface Redeemed {
  user: UserRecord
  takenOver: TakenOver | null
  resetLink: LinkToken | null
}

function redeem(ctx: AuthContext, link: UserTokenRecord, evidence: VerifiedSignupOwnership): Promise<Redeemed> {
  return transaction(ctx, async (ctx) => {
    const locked = await ctx.store.users.lock(link.userId)
    if (!isStill(locked, link.payload)) throw new InvalidTokenError()
    await consumeLink(ctx, link, 'EMAIL_VERIFICATION')
    await ctx.store.userTokens.consumeAllForUser(locked.id, ctx.now(), 'EMAIL_VERIFICATION')
    ctx.events.emit('email.verified', { userId: locked.id })
    const { user, takenOver } = await verifyAddress(ctx, locked, evidence)
    const isMissing = takenOver !== null && hasPasswords(ctx.settings)
    const resetLink = isMissing ? await issueLink(ctx, user.id, 'PASSWORD_RESET', null, newPasswordSeconds) : null
    return { user, takenOver, resetLink }
  })
}

function isStill(user: UserRecord | null, address: string | null): user is UserRecord {
  return user?.isActive === true && user.email === address
}
