import { type AuthContext, transaction } from '../context'
import type { AuthMethod } from '../core/amr'
import { hasPasswords } from '../core/config/every-setting'
import {
  EmailLinkForbiddenError,
  EmailTakenError,
  InvalidCredentialsError,
  InvalidTokenError,
  UnauthorizedError,
  ValidationError,
} from '../core/errors'
import { requireEmail } from '../http/email-address'
import type { Locale } from '../http/locale'
import { hasPassword } from '../passwords/verify-password'
import { isAlive } from '../sessions/find-session'
import { holdSession, isSessionHeld } from '../sessions/reauthentication/fresh-session'
import {
  type Irreversibility,
  readIrreversibility,
  requireFactor,
  writeIrreversibility,
} from '../sessions/reauthentication/irreversible-change'
import { withPassword } from '../sessions/reauthentication/reauthenticate'
import { findActiveUser } from '../sessions/reauthentication/request-session'
import { type CookieOfRequest, renewCookie, type StayingSession } from '../sessions/reissue-tokens'
import { DuplicateRecordError, type SessionRecord, type UserRecord, type UserTokenRecord } from '../store/auth-store'
import { distrust } from '../trusted-devices/distrust'
import { consumeLink, findLink, type LinkProof, type LinkToken, refuseLink, refusesEmailLink } from './email-links/email-link'
import { endOneShots } from './email-links/issue-email-login'
import { mailLink, mailNotice, mayMail } from './email-links/send-mail'
import {
  isSignupOwnership,
  namesSession,
  type SignupOwnership,
  type VerifiedSignupOwnership,
  verifySignupOwnership,
} from './email-verification/signup-ownership'
import type { CodeRequest } from './mailed-codes/code-request'
import { codeIssuer, replaceLinkAndCode } from './mailed-codes/issue-code'
import type { Presented } from './mailed-codes/redeem-code'
import { announceChange, type LeaveUndoPoint } from './undo/announce-change'

export interface EmailChange {
  userId: string
  newEmail: string
  /** The account's password. If left out, the caller guarantees that the person is the account's owner. */
  currentPassword?: string | undefined
  /** How the session authenticated. Left out for a call without a session. The caller is then responsible for authentication. */
  amr?: readonly AuthMethod[] | undefined
  /** If not false, an undo link cannot revert the change (`Irreversibility`). */
  isFinal?: Irreversibility | undefined
  /** The session of the request. If the session has ended, no mail is sent. */
  session?: SessionRecord | null | undefined
}

/** Checked before any mail is sent. Do not send it to the client, because it says whether the new address is taken. */
export interface VerifiedEmailChange {
  user: UserRecord
  newEmail: string
  /** Already has the new address. */
  owner: UserRecord | null
  session: SessionRecord | null | undefined
  isFinal: Irreversibility
}

/**
 * The route must require a fresh session before this call.
 * @throws ValidationError (malformed, or the present address), InvalidCredentialsError, TooManyRequestsError, UnauthorizedError,
 * AccountInactiveError
 */
export async function verifyEmailChange(
  ctx: AuthContext,
  { userId, newEmail: given, currentPassword, amr, session, isFinal = false }: EmailChange,
): Promise<VerifiedEmailChange> {
  const newEmail = requireEmail(given)
  const user = await findActiveUser(ctx, userId)
  requireFactor(ctx, user, amr)
  if (newEmail === user.email) throw new ValidationError({ details: { errors: [{ path: 'new_email', rule: 'unchanged' }] } })
  const look = () => ctx.store.users.findByEmail(newEmail)
  const owner = await (currentPassword === undefined ? look() : withPassword(ctx, user, currentPassword, look, session))
  return { user, newEmail, owner, session, isFinal }
}

/** Also mails the old address. If another account has the new address, mails only its owner. Null if no link was made. */
export async function sendEmailChange(
  ctx: AuthContext,
  { user, newEmail, owner, session, isFinal }: VerifiedEmailChange,
  locale: Locale,
  code: CodeRequest | null = null,
): Promise<LinkToken | null> {
  if (await refusesEmailLink(ctx, user)) return null
  mailNotice(ctx, user, 'email_change_requested', locale)
  if (owner) {
    mailNotice(ctx, owner, 'email_change_taken', locale)
    return null
  }
  if (!(await mayMail(ctx, { id: user.id, email: newEmail }, 'EMAIL_CHANGE'))) return null
  const issuer = await codeIssuer(ctx, code, { email: newEmail })
  const issued = await transaction(ctx, async (ctx) => {
    const locked = await ctx.store.users.lock(user.id)
    // The account's password or address may have changed after the checks.
    const isStill = locked?.isActive && locked.email === user.email && locked.hashedPassword === user.hashedPassword
    if (!isStill || !(await isSessionHeld(ctx, session))) return null
    const payload = writeChange({ email: newEmail, sessionId: session?.id ?? null, isFinal })
    return replaceLinkAndCode(ctx, locked, { purpose: 'EMAIL_CHANGE', payload }, issuer)
  })
  if (!issued) return null
  // The new address is unverified, so its mail contains no name.
  const { link, code: mailedCode } = issued
  const recipient = { ...user, email: newEmail, emailVerifiedAt: null }
  mailLink(ctx, recipient, 'email_change', link, locale, { items: [newEmail], code: mailedCode })
  return link
}

interface OpenChange {
  readonly email: string
  /** Null if the host requested the change, or if the store keeps no sessions. */
  readonly sessionId: string | null
  readonly isFinal: Irreversibility
}

const nothing = '-'

function writeChange({ email, sessionId, isFinal }: OpenChange): string {
  return [writeIrreversibility(isFinal) || nothing, sessionId ?? nothing, email].join(' ')
}

function readChange(payload: string): OpenChange {
  const [irreversibility = '', sessionId = '', email = ''] = payload.split(' ')
  return {
    email,
    sessionId: sessionId === nothing ? null : sessionId,
    isFinal: irreversibility !== nothing && readIrreversibility(irreversibility),
  }
}

interface Confirmation {
  readonly evidence?: SignupOwnership | undefined
  /** If its session requested the change, the change replaces the cookie's value. */
  readonly cookie?: CookieOfRequest | null | undefined
  readonly locale?: Locale | undefined
}

/**
 * Only the session that asked for the change may try its code: not the password, which a thief may know. Asks nothing about the code, so a
 * taken address answers the same.
 * @throws UnauthorizedError for another session; InvalidTokenError if the session that asked has ended
 */
export async function requireAsker(ctx: AuthContext, { proof, kept }: Presented, evidence: SignupOwnership): Promise<void> {
  const asker = 'code' in proof ? kept?.asker : undefined
  if (!asker) return
  const { userId, sessionId } = asker
  const { requestSession, sessionIds = [], token } = evidence
  if (sessionId === null ? token?.claims.sub === userId : requestSession?.id === sessionId || sessionIds.includes(sessionId)) return
  const asking = sessionId === null ? null : await ctx.store.sessions?.find({ id: sessionId })
  const hasEnded = sessionId !== null && !(asking && isAlive(asking.session, ctx.now()))
  throw hasEnded ? new InvalidTokenError() : new UnauthorizedError()
}

/**
 * The address is then verified, and every earlier link is invalid. If the session that requested the change has ended, the link is dead. A
 * click alone is not enough, because an attacker may have requested or received the link: it needs that session, or the password.
 * @param options.evidence left out for a call of the host, which is then responsible
 * @returns `session`: that of the request, if it requested the change
 * @throws InvalidTokenError; EmailLinkForbiddenError (the link is used up); UnauthorizedError (it stays valid); EmailTakenError (nothing
 * changes)
 */
export async function confirmEmailChange(
  ctx: AuthContext,
  proof: LinkProof,
  { evidence: shown, cookie, locale }: Confirmation = {},
): Promise<StayingSession> {
  const { link, change, user, isRefused } = await findOpenChange(ctx, proof)
  if (isRefused) return refuseLink(ctx, link, 'EMAIL_CHANGE')
  const evidence = shown && typeof proof !== 'string' ? { ...shown, password: undefined } : shown // a code needs the session
  const weighed = evidence ? await weighAsOwner(ctx, user, ofAskingSession(change, evidence)) : null
  const requestSession = evidence?.requestSession?.id === change.sessionId ? evidence?.requestSession : null
  const renewing = { requestSession, cookie }
  const topic = { topic: 'email_changed', locale: locale ?? ctx.settings.defaultLocale } as const
  return announceChange(ctx, user.id, topic, async (leaveUndoPoint) => {
    try {
      return await transaction(ctx, (ctx) => redeem(ctx, { link, change, user }, weighed, renewing, leaveUndoPoint))
    } catch (error) {
      throw error instanceof DuplicateRecordError ? new EmailTakenError({ cause: error }) : error
    }
  })
}

/** `asking session`: the session that requested the change. */
export type ChangeNeeds = 'nothing' | 'password' | 'sign in' | 'asking session'

/** Does not use the link. @throws InvalidTokenError, EmailLinkForbiddenError */
export async function lookAtEmailChange(
  ctx: AuthContext,
  token: string,
  evidence: SignupOwnership,
): Promise<{ newEmail: string; needs: ChangeNeeds }> {
  const { change, user, isRefused } = await findOpenChange(ctx, token)
  if (isRefused) throw new EmailLinkForbiddenError()
  return { newEmail: change.email, needs: await needsOf(ctx, user, change, ofAskingSession(change, evidence)) }
}

async function needsOf(ctx: AuthContext, user: UserRecord, { sessionId }: OpenChange, evidence: SignupOwnership): Promise<ChangeNeeds> {
  if (await namesSession(ctx, user, evidence)) return 'nothing'
  if (hasPasswords(ctx.settings) && hasPassword(user)) return 'password'
  return sessionId === null ? 'sign in' : 'asking session'
}

interface FoundChange {
  readonly link: UserTokenRecord
  readonly change: OpenChange
  readonly user: UserRecord
}

/** The session comes before any password, because a wrong password must not tell that the link is open. @throws InvalidTokenError */
async function findOpenChange(ctx: AuthContext, proof: LinkProof): Promise<FoundChange & { isRefused: boolean }> {
  const link = await findLink(ctx, proof, 'EMAIL_CHANGE')
  const user = await ctx.store.users.find(link.userId)
  if (!user?.isActive || link.payload === null) throw new InvalidTokenError()
  const change = readChange(link.payload)
  if (change.sessionId !== null && !(await namesSession(ctx, user, { sessionIds: [change.sessionId] }))) throw new InvalidTokenError()
  return { link, change, user, isRefused: await refusesEmailLink(ctx, user) }
}

/** Only the session that requested the change counts. The device cookie does not, because it is no credential. */
function ofAskingSession({ sessionId }: OpenChange, evidence: SignupOwnership): SignupOwnership {
  const { requestSession, sessionIds = [] } = evidence
  const presented = [...sessionIds, ...(requestSession ? [requestSession.id] : [])]
  return { ...evidence, deviceSession: undefined, sessionIds: sessionId === null ? presented : presented.filter((id) => id === sessionId) }
}

/** A wrong or missing password and a wrong session all get the same error. @throws UnauthorizedError */
async function weighAsOwner(ctx: AuthContext, user: UserRecord, evidence: SignupOwnership): Promise<VerifiedSignupOwnership> {
  try {
    const weighed = await verifySignupOwnership(ctx, user, evidence)
    if (weighed.verifiedHash !== null || (await namesSession(ctx, user, weighed))) return weighed
  } catch (error) {
    if (!(error instanceof InvalidCredentialsError)) throw error
  }
  throw new UnauthorizedError()
}

async function redeem(
  ctx: AuthContext,
  { link, change: { email, sessionId, isFinal }, user: seen }: FoundChange,
  evidence: VerifiedSignupOwnership | null,
  { requestSession, cookie }: Pick<Confirmation, 'cookie'> & Pick<SignupOwnership, 'requestSession'>,
  leaveUndoPoint: LeaveUndoPoint,
): Promise<StayingSession> {
  const now = ctx.now()
  const user = await ctx.store.users.lock(link.userId)
  if (!user?.isActive || user.email !== seen.email) throw new InvalidTokenError()
  const held = await holdSession(ctx, requestSession ?? (sessionId === null ? null : { id: sessionId, userId: user.id }))
  if (evidence && !(await isSignupOwnership(ctx, user, evidence))) throw new UnauthorizedError()
  await consumeLink(ctx, link, 'EMAIL_CHANGE')
  await leaveUndoPoint(ctx, { user, isFinal })
  await endOneShots(ctx, user)
  await distrust(ctx, user.id, { reason: 'account_changed' })
  const changes = { email, emailVerifiedAt: now, updatedAt: now }
  await ctx.store.users.update(user.id, changes)
  ctx.events.emit('email.changed', { userId: user.id })
  return { user: { ...user, ...changes }, cookie: await renewCookie(ctx, held, requestSession ? cookie : null) }
}
