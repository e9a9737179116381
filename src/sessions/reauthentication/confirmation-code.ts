import { randomUUID } from 'node:crypto'
import type { Request } from 'express'
import { isCodeOf, mostTries, refusesEmailLink } from '../../accounts/email-links/email-link'
import { type AskedFrom, type IssuedEmailLogin, issueEmailLogin, openEmailLogins } from '../../accounts/email-links/issue-email-login'
import { mailCode, mayMail } from '../../accounts/email-links/send-mail'
import { type AuthContext, transaction } from '../../context'
import { EmailLinkForbiddenError, EmailLoginInvalidError, EmailNotVerifiedError, MfaRequiredError } from '../../core/errors'
import type { Locale } from '../../http/locale'
import type { EmailLoginRecord, EmailLoginStore, SessionRecord, UserRecord } from '../../store/auth-store'
import { findKnownDevice, type KnownDevice, presentedDevice } from '../devices/device-cookie'
import { holdSession, requestSessionOf } from './fresh-session'
import { requireVerifiedAddress } from './irreversible-change'
import { mailsCodes, needsFactor } from './methods'

interface Asking {
  readonly user: UserRecord
  /** Null if the store keeps no sessions: then no code can belong to one. */
  readonly session: SessionRecord | null
}

interface CodeRequest extends AskedFrom {
  readonly locale: Locale
  readonly device?: KnownDevice | null
}

/** A code of eight digits. */
export interface ConfirmationCode {
  readonly code: string
  readonly expiresAt: Date
}

/**
 * The code confirms only this session, and replaces its earlier code.
 * @returns null if no mail was sent: the address may get no further mail now, or has changed; the earlier code then stays valid
 * @throws EmailNotVerifiedError, MfaRequiredError (only a second factor counts), EmailLinkForbiddenError, InvalidTokenError
 */
export async function requestConfirmationCode(
  ctx: AuthContext,
  { user, session }: Asking,
  { locale, device = null, ...origin }: CodeRequest,
): Promise<ConfirmationCode | null> {
  await requireTakesCode(ctx, user)
  if (!session || !(await mayMail(ctx, user, 'CONFIRMATION_CODE', { device }))) return null
  const issued = await transaction(ctx, (ctx) => replaceCode(ctx, { user, session }, { ...origin, isKnownDevice: device !== null }))
  if (issued?.code == null) return null
  mailCode(ctx, user, 'confirmation_code', issued, locale)
  return { code: issued.code, expiresAt: issued.expiresAt }
}

async function requireTakesCode(ctx: AuthContext, user: UserRecord): Promise<void> {
  if (!mailsCodes(ctx))
    throw new Error('doorward cannot mail a code to confirm a session. Pass a mailer, and a store with `sessions` and `emailLogins`.')
  requireVerifiedAddress(ctx, user)
  if (user.emailVerifiedAt === null) throw new EmailNotVerifiedError()
  if (needsFactor(ctx, user)) throw new MfaRequiredError()
  if (await refusesEmailLink(ctx, user)) throw new EmailLinkForbiddenError()
}

/** Null if the account has another or an unverified address by now. */
async function replaceCode(
  ctx: AuthContext,
  { user: { id: userId, email }, session }: { user: UserRecord; session: SessionRecord },
  asked: AskedFrom & Pick<EmailLoginRecord, 'isKnownDevice'>,
): Promise<IssuedEmailLogin | null> {
  const locked = await ctx.store.users.lock(userId)
  if (locked?.email !== email || locked.emailVerifiedAt === null) return null
  await holdSession(ctx, session)
  const emailLogins = codesOf(ctx)
  for (const { id } of await openCodes(ctx, emailLogins, { email, sessionId: session.id })) await emailLogins.consume(id, ctx.now())
  return issueEmailLogin(ctx, emailLogins, { ...asked, id: randomUUID(), email, returnTo: null, sessionId: session.id, carries: 'code' })
}

/** Counts before comparing, also if a later step fails. @returns call it in the confirming transaction; only one call succeeds */
export async function tryConfirmationCode(
  ctx: AuthContext,
  { user, session }: Asking,
  typed: string,
): Promise<(ctx: AuthContext) => Promise<void>> {
  if (!session || !mailsCodes(ctx) || (await refusesEmailLink(ctx, user))) throw new EmailLoginInvalidError()
  const emailLogins = codesOf(ctx)
  const newest = (await openCodes(ctx, emailLogins, { email: user.email, sessionId: session.id })).at(-1)
  const tried = newest ? await emailLogins.countTry(newest.id, mostTries, ctx.now()) : null
  if (!tried || !isCodeOf(ctx, tried, typed)) throw new EmailLoginInvalidError()
  return async (ctx) => {
    if (!(await codesOf(ctx).consume(tried.id, ctx.now()))) throw new EmailLoginInvalidError()
  }
}

async function openCodes(
  ctx: AuthContext,
  emailLogins: EmailLoginStore,
  { email, sessionId }: { email: string; sessionId: string },
): Promise<EmailLoginRecord[]> {
  return (await openEmailLogins(emailLogins, email, ctx.now())).filter((login) => login.sessionId === sessionId)
}

function codesOf({ store }: AuthContext): EmailLoginStore {
  if (store.emailLogins) return store.emailLogins
  throw new Error('The store has no `emailLogins`.')
}

/** A known device has its own limit, so others cannot lock the owner out. A token alone shows none. Call it after `aliveSession`. */
export async function codeDevice(
  ctx: AuthContext,
  req: Request,
  { code, previous_token }: { code?: string | undefined; previous_token?: string | undefined },
): Promise<KnownDevice | null> {
  if (code === undefined) return null
  return findKnownDevice(ctx, requestSessionOf(req).user.email, presentedDevice(ctx, req, { previous_token }))
}
