import type { AuthMethod } from '../amr'
import { hasPasswords } from '../config/has-passwords'
import { type AuthContext, unitOfWork } from '../context'
import {
  EmailLinkForbiddenError,
  EmailTakenError,
  InvalidCredentialsError,
  InvalidTokenError,
  UnauthorizedError,
  ValidationError,
} from '../errors'
import { type Evidence, isEvidence, namesSession, type WeighedEvidence, weighEvidence } from '../first-proof/evidence'
import { requireEmail } from '../http/email-address'
import type { Locale } from '../http/locale'
import { findLink, type LinkToken, replaceLink, spendLink } from '../mailbox/email-link'
import { endOneShots } from '../mailbox/email-logins-of'
import { refuseLink, refusesEmailLink } from '../mailbox/refuses-email-link'
import { mailLink, mailNotice, mayMail } from '../mailbox/send-mail'
import { hasPassword } from '../passwords/unusable-password'
import { type Finality, readFinality, writeFinality } from '../step-up/finality'
import { findActiveUser } from '../step-up/find-active-user'
import { isSessionHeld } from '../step-up/fresh-session'
import { requireFactor } from '../step-up/require-factor'
import { withPassword } from '../step-up/with-password'
import { DuplicateRecordError, type SessionRecord, type UserRecord, type UserTokenRecord } from '../store/auth-store'
import { announceChange, type LeaveUndoPoint } from '../undo/announce-change'

export interface EmailChange {
  userId: string
  newEmail: string
  /** Checked where it is given. Left out: the caller answers for it that this is the account's owner. */
  currentPassword?: string | undefined
  /** How the session that asks began; left out: a call without one, whose caller answers for it. */
  amr?: readonly AuthMethod[] | undefined
  /** What confirmed the change, so that no link undoes it. */
  isFinal?: Finality | undefined
  /** The session that asks: nothing is mailed where it ends before. */
  session?: SessionRecord | null | undefined
}

/** What a change needs before anything is mailed; nothing here tells whether the new address is taken. */
export interface ProvenEmailChange {
  user: UserRecord
  newEmail: string
  /** Who has the new address already. */
  owner: UserRecord | null
  session: SessionRecord | null | undefined
  isFinal: Finality
}

/**
 * What a change of address needs: the account, and a new address that is one. A route has asked for a fresh session before.
 * @throws ValidationError (no address, or the present one), InvalidCredentialsError, TooManyRequestsError,
 *   UnauthorizedError, AccountInactiveError
 */
export async function proveEmailChange(
  ctx: AuthContext,
  { userId, newEmail: given, currentPassword, amr, session, isFinal = false }: EmailChange,
): Promise<ProvenEmailChange> {
  const newEmail = requireEmail(given)
  const user = await findActiveUser(ctx, userId)
  requireFactor(ctx, user, amr)
  if (newEmail === user.email) throw new ValidationError({ details: { errors: [{ path: 'new_email', rule: 'unchanged' }] } })
  const look = () => ctx.store.users.findByEmail(newEmail)
  const owner = await (currentPassword === undefined ? look() : withPassword(ctx, user, currentPassword, look, session))
  return { user, newEmail, owner, session, isFinal }
}

/**
 * Mails the link to the new address, and a notice to the old one. A taken address gets no link; its owner is told. Null:
 * no link.
 */
export async function sendEmailChange(
  ctx: AuthContext,
  { user, newEmail, owner, session, isFinal }: ProvenEmailChange,
  locale: Locale,
): Promise<LinkToken | null> {
  if (await refusesEmailLink(ctx, user)) return null
  mailNotice(ctx, user, 'email_change_requested', locale)
  if (owner) {
    mailNotice(ctx, owner, 'email_change_taken', locale)
    return null
  }
  if (!(await mayMail(ctx, { id: user.id, email: newEmail }, 'EMAIL_CHANGE'))) return null
  const link = await unitOfWork(ctx, async (ctx) => {
    const locked = await ctx.store.users.lock(user.id)
    // What a reset did in between ends what was begun before it.
    const isStill = locked?.isActive && locked.email === user.email && locked.hashedPassword === user.hashedPassword
    return isStill && (await isSessionHeld(ctx, session))
      ? replaceLink(ctx, locked, 'EMAIL_CHANGE', isFinal ? `${writeFinality(isFinal)} ${newEmail}` : newEmail)
      : null
  })
  // The new address has proven nothing yet: the mail to it does not repeat a name.
  if (link) mailLink(ctx, { ...user, email: newEmail, emailVerifiedAt: null }, 'email_change', link, locale)
  return link
}

/**
 * Uses the link: the account has the new, verified address, and every earlier link is invalid. A click alone is not enough, because an
 * attacker may have received or requested the link. It needs a session of the account that requested it, or its password.
 * @param options.evidence left out: a call of the host's, which answers for the person
 * @throws InvalidTokenError; EmailLinkForbiddenError with the link spent; UnauthorizedError with the link as it was; EmailTakenError when
 *   somebody else has the address by now, with nothing changed
 */
export async function confirmEmailChange(
  ctx: AuthContext,
  token: string,
  { evidence, locale }: { evidence?: Evidence | undefined; locale?: Locale | undefined } = {},
): Promise<void> {
  const { link, user, isRefused } = await findLinkAndUser(ctx, token)
  if (isRefused) return refuseLink(ctx, link, 'EMAIL_CHANGE')
  requireOpen(user, link)
  const weighed = evidence ? await weighAsOwner(ctx, user, evidence) : null
  await announceChange(ctx, user.id, { topic: 'email_changed', locale: locale ?? ctx.settings.defaultLocale }, async (leaveUndoPoint) => {
    try {
      await unitOfWork(ctx, (ctx) => redeem(ctx, link, user, weighed, leaveUndoPoint))
    } catch (error) {
      throw error instanceof DuplicateRecordError ? new EmailTakenError({ cause: error }) : error
    }
  })
  ctx.events.emit('email.changed', { userId: user.id })
}

/** What a page asks for beside the click. */
export type ChangeNeeds = 'nothing' | 'password' | 'sign in'

/** What a link is good for; spends nothing. @throws InvalidTokenError, EmailLinkForbiddenError */
export async function lookAtEmailChange(ctx: AuthContext, token: string, evidence: Evidence): Promise<ChangeNeeds> {
  const { link, user, isRefused } = await findLinkAndUser(ctx, token)
  if (isRefused) throw new EmailLinkForbiddenError()
  requireOpen(user, link)
  if (await namesSession(ctx, user, evidence)) return 'nothing'
  return hasPasswords(ctx.settings) && hasPassword(user) ? 'password' : 'sign in'
}

async function findLinkAndUser(ctx: AuthContext, token: string): Promise<{ link: UserTokenRecord; user: UserRecord; isRefused: boolean }> {
  const link = await findLink(ctx, token, 'EMAIL_CHANGE')
  const user = await ctx.store.users.find(link.userId)
  if (!user) throw new InvalidTokenError()
  return { link, user, isRefused: await refusesEmailLink(ctx, user) }
}

function requireOpen(user: UserRecord, link: UserTokenRecord): void {
  if (!user.isActive || link.payload === null) throw new InvalidTokenError()
}

/** One refusal for a wrong password and for none: a session of somebody else's is none either. @throws UnauthorizedError */
async function weighAsOwner(ctx: AuthContext, user: UserRecord, evidence: Evidence): Promise<WeighedEvidence> {
  try {
    const weighed = await weighEvidence(ctx, user, evidence)
    if (weighed.verifiedHash !== null || (await namesSession(ctx, user, weighed))) return weighed
  } catch (error) {
    if (!(error instanceof InvalidCredentialsError)) throw error
  }
  throw new UnauthorizedError()
}

async function redeem(
  ctx: AuthContext,
  link: UserTokenRecord,
  seen: UserRecord,
  evidence: WeighedEvidence | null,
  leaveUndoPoint: LeaveUndoPoint,
): Promise<void> {
  const now = ctx.now()
  const user = await ctx.store.users.lock(link.userId)
  if (!user?.isActive || user.email !== seen.email || link.payload === null) throw new InvalidTokenError()
  if (evidence && !(await isEvidence(ctx, user, evidence))) throw new UnauthorizedError()
  await spendLink(ctx, link, 'EMAIL_CHANGE')
  // Before the address of a final change stands what confirmed it. No address has a blank.
  const [email = '', finality] = link.payload.split(' ').reverse()
  const isFinal = readFinality(finality)
  await leaveUndoPoint(ctx, { user, isFinal })
  await endOneShots(ctx, user)
  await ctx.store.users.update(user.id, { email, emailVerifiedAt: now, updatedAt: now })
}
