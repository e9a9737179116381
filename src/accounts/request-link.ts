import { type AuthContext, transaction } from '../context'
import type { Locale } from '../http/locale'
import type { KnownDevice } from '../sessions/devices/device-cookie'
import type { UserRecord } from '../store/auth-store'
import { ACTIVATION_WITHHELD, isPending, type LinkToken, refusesEmailLink } from './email-links/email-link'
import { mailLink, mayMail } from './email-links/send-mail'
import { newSignupMark, type SignupMark, signupMarkOf, signupMarkToText } from './email-verification/signup-binding'
import type { CodeRequest } from './mailed-codes/code-request'
import { codeIssuer, replaceLinkAndCode } from './mailed-codes/issue-code'
import { keepImported } from './sign-up-again'

interface ActivationRequest extends LinkRequest {
  readonly forgotPassword?: boolean
  readonly mark?: SignupMark
}

interface LinkRequest {
  readonly device?: KnownDevice | null
  /** Absent or null: the mail has the link alone. */
  readonly code?: CodeRequest | null
}

/**
 * Null for an account that is not pending, and for no account. `forgotPassword`: an attacker may have signed up and wait until the owner
 * verifies the address, so the link never keeps that password. `mark`: the sign-up of the link. Default: that of the account's newest
 * unused link.
 */
export async function sendActivation(
  ctx: AuthContext,
  user: UserRecord | null,
  locale: Locale,
  { forgotPassword = false, mark, device = null, code }: ActivationRequest = {},
): Promise<LinkToken | typeof ACTIVATION_WITHHELD | null> {
  if (!user || !(await isPending(ctx, user))) return null
  if (await refusesEmailLink(ctx, user)) return ACTIVATION_WITHHELD
  if (!(await mayMail(ctx, user, 'ACTIVATION', { device }))) return null
  const issuer = await codeIssuer(ctx, code, { email: user.email, isKnownDevice: device !== null })
  const issued = await transaction(ctx, async (ctx) => {
    const locked = await ctx.store.users.lock(user.id)
    // No mail if the account has another address now.
    if (locked?.email !== user.email || !(await isPending(ctx, locked))) return null
    // A changed password means that a newer sign-up has replaced this one, which gets no link.
    if (mark && locked.hashedPassword !== user.hashedPassword) return null
    if (!mark) await keepImported(ctx, locked)
    const known = mark ?? (await newestMark(ctx, locked))
    // Only a mark can say that a link after "forgot my password" is not lenient.
    const signup = known ?? (forgotPassword ? newSignupMark(ctx, locked) : null)
    const payload = signup && signupMarkToText({ ...signup, isLenient: !forgotPassword })
    // A link of before the first link of a sign-up has no mark, so it never stays instead of that one.
    const issuing = mark ? { ...issuer, overtakenAt: null } : issuer
    const made = await replaceLinkAndCode(ctx, locked, { purpose: 'ACTIVATION', payload }, issuing)
    return made && { ...made, signup: known }
  })
  if (!issued) return null
  const { link, signup, code: mailedCode } = issued
  mailLink(ctx, user, 'activation', link, locale, { code: mailedCode, ...(signup && { signup }) })
  return link
}

/** Also of an expired link. */
async function newestMark(ctx: AuthContext, { id }: UserRecord): Promise<SignupMark | null> {
  const links = await ctx.store.userTokens.listOpen(id, 'ACTIVATION', new Date(0))
  const newest = links.at(-1)
  return newest ? signupMarkOf(newest) : null
}

/**
 * A pending account gets an activation link instead, which does not keep the password of the sign-up. A deactivated account, an unknown
 * address and an account whose links the host forbids get no mail.
 */
export async function sendPasswordReset(
  ctx: AuthContext,
  user: UserRecord | null,
  locale: Locale,
  { device = null, code }: LinkRequest = {},
): Promise<LinkToken | null> {
  if (!user) return null
  if (!user.isActive) {
    await sendActivation(ctx, user, locale, { forgotPassword: true, device })
    return null
  }
  if ((await refusesEmailLink(ctx, user)) || !(await mayMail(ctx, user, 'PASSWORD_RESET', { device }))) return null
  const issuer = await codeIssuer(ctx, code, { email: user.email, isKnownDevice: device !== null })
  const issued = await transaction(ctx, async (ctx) => {
    const locked = await ctx.store.users.lock(user.id)
    // With a link to the account's old address, another person could log in.
    if (!locked?.isActive || locked.email !== user.email) return null
    return replaceLinkAndCode(ctx, locked, { purpose: 'PASSWORD_RESET' }, issuer)
  })
  if (!issued) return null
  mailLink(ctx, user, 'password_reset', issued.link, locale, { code: issued.code })
  return issued.link
}
