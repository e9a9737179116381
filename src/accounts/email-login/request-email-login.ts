import type { Request, Response } from 'express'
import { type AuthContext, transaction } from '../../context'
import { AppError, InvitationRequiredError } from '../../core/errors'
import { normalizeEmail } from '../../http/email-address'
import type { Locale } from '../../http/locale'
import { invitationOfLogin } from '../../invitations/invitation'
import { isLeaving, mayProve } from '../../sessions/account-state'
import { epochSeconds, readPrivateToken, signPrivateToken } from '../../sessions/challenge'
import { clearProofCookie, readProofCookie, setProofCookie } from '../../sessions/cookies'
import type { KnownDevice } from '../../sessions/devices/device-cookie'
import { after } from '../../sessions/find-session'
import type { EmailLoginStore, InvitationRecord, UserRecord } from '../../store/auth-store'
import { findByAddress, refusesEmailLink } from '../email-links/email-link'
import { type AskedFrom, emailLoginsOf, type IssuedEmailLogin, issueEmailLogin, makeRoom } from '../email-links/issue-email-login'
import { mailCode, mailNotice, mayMail } from '../email-links/send-mail'
import { mayActivate } from '../email-verification/verify-address'
import { mayMailCode } from '../mailed-codes/code-limit'

interface EmailLoginRequest extends AskedFrom {
  readonly id: string
  /** In lower case. */
  readonly email: string
  readonly returnTo: string | null
  readonly locale: Locale
  /** Null for an unknown client. */
  readonly device: KnownDevice | null
  /** The browser's earlier request. */
  readonly earlierId: string | null
  /** The token of an invitation, for a new account. */
  readonly invitation: string | null
}

/** Without an account, mails a notice unless the confirmation may create one (`emailLoginSilent`: none). Null: no link, no code. */
export async function requestEmailLogin(ctx: AuthContext, request: EmailLoginRequest): Promise<IssuedEmailLogin | null> {
  const user = await findByAddress(ctx, request.email)
  ctx.events.emit('email_login.requested', { userId: user?.id ?? null })
  if (!user) return requestForNobody(ctx, request)
  if (isLeaving(user)) return null
  if (!(mayProve(user) ? !(await refusesEmailLink(ctx, user)) : await mayActivate(ctx, user))) return null
  const invitation = mayProve(user) ? null : await findInvitation(ctx, request, { isPending: true })
  return issueAndMail(ctx, user, { ...request, invitationId: invitation?.id ?? null })
}

/** Null: none. Undefined: the one that was given is not good, or a missing one is required. */
async function findInvitation(
  ctx: AuthContext,
  { email, invitation }: EmailLoginRequest,
  { isPending }: { isPending: boolean },
): Promise<InvitationRecord | null | undefined> {
  try {
    return await invitationOfLogin(ctx, invitation, { email, isVerified: true, isPending })
  } catch (error) {
    if (error instanceof InvitationRequiredError) return undefined
    throw error
  }
}

async function requestForNobody(ctx: AuthContext, request: EmailLoginRequest): Promise<IssuedEmailLogin | null> {
  const email = normalizeEmail(request.email)
  if (email === null) return null // the text is not a valid address
  const { emailLoginSignup, emailLoginSilent, signupEnabled } = ctx.settings
  const invitation = await findInvitation(ctx, { ...request, email }, { isPending: false })
  if (invitation === undefined) return null
  if (await isAdmitted(ctx, email)) return issueAndMail(ctx, null, { ...request, invitationId: invitation?.id ?? null })
  if (emailLoginSilent) return null
  const canSignUp = signupEnabled && !emailLoginSignup // with emailLoginSignup, the host has just rejected this address
  mailNotice(ctx, { id: null, email, name: null, emailVerifiedAt: null }, 'no_account', request.locale, { canSignUp })
  return null
}

/** The response may already be sent, so an AppError of the host counts as a rejection. Any other error is thrown and logged. */
async function isAdmitted(ctx: AuthContext, email: string): Promise<boolean> {
  try {
    return await maySignUp(ctx, email)
  } catch (error) {
    if (error instanceof AppError) return false
    throw error
  }
}

interface ToMail extends EmailLoginRequest {
  readonly invitationId: string | null
}

async function issueAndMail(ctx: AuthContext, user: UserRecord | null, request: ToMail): Promise<IssuedEmailLogin | null> {
  const { email, device, locale } = request
  const recipient = user ?? { id: null, email, name: null, emailVerifiedAt: null }
  if (!(await mayMail(ctx, recipient, 'EMAIL_LOGIN', { device }))) return null
  const carries = await carriedBy(ctx, { email, isKnownDevice: device !== null })
  const issued = await transaction(ctx, async (ctx) => {
    // The lock orders two parallel requests: the second one sees the row of the first. A changed address gets no mail.
    const locked = user && (await ctx.store.users.lock(user.id))
    if (user && (locked?.email !== email || locked.isActive !== user.isActive)) return null
    return replaceEarlier(ctx, requireEmailLogins(ctx), { ...request, carries })
  })
  if (issued) mailCode(ctx, recipient, 'email_login', issued, locale)
  return issued
}

/** After too many wrong codes, a mail with both has the link alone. */
async function carriedBy(
  ctx: AuthContext,
  code: { email: string; isKnownDevice: boolean },
): Promise<AuthContext['settings']['emailLogin']> {
  const { emailLogin, mailedCodes } = ctx.settings
  const isLimited = emailLogin === 'both' && mailedCodes === 'both'
  return isLimited && !(await mayMailCode(ctx, code)) ? 'link' : emailLogin
}

async function replaceEarlier(
  ctx: AuthContext,
  emailLogins: EmailLoginStore,
  {
    id,
    email,
    returnTo,
    device,
    earlierId,
    ip,
    userAgent,
    carries,
    invitationId,
  }: ToMail & { carries: AuthContext['settings']['emailLogin'] },
): Promise<IssuedEmailLogin | null> {
  const isKnownDevice = device !== null
  if (earlierId !== null) await emailLogins.consume(earlierId, ctx.now())
  if (carries === 'off' || !(await makeRoom(ctx, emailLogins, { email, isKnownDevice }))) return null
  return issueEmailLogin(ctx, emailLogins, { id, email, returnTo, sessionId: null, isKnownDevice, ip, userAgent, carries, invitationId })
}

/** If login by email is on, the boot checks require the store. */
export function requireEmailLogins(ctx: AuthContext): EmailLoginStore {
  const emailLogins = emailLoginsOf(ctx)
  if (emailLogins) return emailLogins
  throw new Error('Login by email is off: set emailLogin (AUTH_EMAIL_LOGIN), and give the store its table.')
}

const cookieName = 'email_login'
const typ = 'email-login'

/** A code works only in this browser. The id is random, so the cookie does not reveal whether the address has an account. */
export function rememberRequest(ctx: AuthContext, res: Response, requestId: string): void {
  setProofCookie(ctx, res, cookieName, requestId, ctx.settings.emailLoginTtlSeconds)
}

/** Null if the browser has no valid cookie. */
export function requestOfBrowser(ctx: AuthContext, req: Request): string | null {
  return readProofCookie(ctx, req, cookieName)
}

export function forgetRequest(ctx: AuthContext, res: Response): void {
  clearProofCookie(ctx, res, cookieName)
}

/** The `request_token`, for clients without cookies. */
export function signRequestToken(ctx: AuthContext, requestId: string): string {
  const now = ctx.now()
  const exp = epochSeconds(after(now, ctx.settings.emailLoginTtlSeconds))
  return signPrivateToken(ctx.keys['email-login'][0], { exp, iat: epochSeconds(now), jti: requestId, typ })
}

/** Null if the token is invalid or expired. */
export function readRequestToken(ctx: AuthContext, token: string): string | null {
  const claims = readPrivateToken(ctx.keys['email-login'], token, { typ, at: ctx.now() })
  return claims && String(claims['jti'])
}

/** Calls the host's `signup.admit`. @throws the errors of `admit` */
export async function maySignUp(ctx: AuthContext, email: string): Promise<boolean> {
  const { emailLoginSignup, signupEnabled } = ctx.settings
  return emailLoginSignup && signupEnabled && (await ctx.signup.admit?.({ email, name: null })) !== false
}
