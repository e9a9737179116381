import type { AuthContext } from '../../context'
import { hashOpaqueToken, newOpaqueToken } from '../../core/opaque-token'
import { endLoginTasks } from '../../login-tasks/task-token'
import { after } from '../../sessions/find-session'
import { plainText } from '../../sessions/insert-session'
import type { EmailLoginRecord, EmailLoginStore, UserRecord } from '../../store/auth-store'
import { emailLoginUrl, hashCode, newCode } from './email-link'

/** In plain text: returned once and never stored. */
export interface IssuedEmailLogin {
  readonly token: string | null
  readonly url: string | null
  /** Eight digits. */
  readonly code: string | null
  readonly expiresAt: Date
}

/** The client that requests the mail. */
export interface AskedFrom {
  readonly ip?: string | null | undefined
  readonly userAgent?: string | null | undefined
}

interface ToIssue extends AskedFrom, Pick<EmailLoginRecord, 'id' | 'email' | 'returnTo' | 'sessionId' | 'isKnownDevice'> {
  readonly carries: 'link' | 'code' | 'both'
  /** Null or left out: none. */
  readonly invitationId?: string | null
}

/** For an address. A known device can exceed it. */
const mostOpen = 5

/** Call it inside a transaction. */
export async function issueEmailLogin(
  ctx: AuthContext,
  emailLogins: EmailLoginStore,
  { carries, ip, userAgent, invitationId = null, ...given }: ToIssue,
): Promise<IssuedEmailLogin> {
  const now = ctx.now()
  const token = carries === 'code' ? null : newOpaqueToken()
  const code = carries === 'link' ? null : newCode()
  const expiresAt = after(now, ctx.settings.emailLoginTtlSeconds)
  await emailLogins.insert({
    ...given,
    tokenHash: token && hashOpaqueToken(token),
    codeHash: code && hashCode(ctx, given.id, code),
    tries: 0,
    ip: plainText(ip, 45),
    userAgent: plainText(userAgent, 512),
    createdAt: now,
    expiresAt,
    usedAt: null,
    ...(invitationId !== null && { invitationId }),
  })
  return { token, url: token && emailLoginUrl(ctx, token), code, expiresAt }
}

/** Of logins and confirmations, oldest first, without the codes of other purposes. */
export async function openEmailLogins(emailLogins: EmailLoginStore, email: string, at: Date): Promise<EmailLoginRecord[]> {
  return (await emailLogins.listOpen(email, at)).filter(isOfLogin)
}

/** Rows of other purposes are not for the routes that log in or confirm a session. */
export function isOfLogin({ purpose = null }: EmailLoginRecord): boolean {
  return purpose === null
}

/** Ends the oldest open requests, never those of known devices. @returns false: an unknown client gets no mail, for lack of room */
export async function makeRoom(
  ctx: AuthContext,
  emailLogins: EmailLoginStore,
  { email, isKnownDevice }: Pick<EmailLoginRecord, 'email' | 'isKnownDevice'>,
): Promise<boolean> {
  const open = (await emailLogins.listOpen(email, ctx.now())).filter(isLoginRow)
  const tooMany = Math.max(0, open.length + 1 - mostOpen)
  const ofStrangers = open.filter((login) => !login.isKnownDevice).slice(0, tooMany)
  if (ofStrangers.length < tooMany && !isKnownDevice) return false
  for (const { id } of ofStrangers) await emailLogins.consume(id, ctx.now())
  return true
}

/** False for a confirmation of a session, and for a code of another purpose: routes of logins do not see these rows. */
export function isLoginRow({ sessionId, purpose = null }: EmailLoginRecord): boolean {
  return sessionId === null && purpose === null
}

/** Null if login by email is off and no mailer sends confirmation codes. The table may then be missing. */
export function emailLoginsOf({ store, settings, mailQueue }: AuthContext): EmailLoginStore | null {
  const isWritten = settings.emailLogin !== 'off' || mailQueue !== null
  return (isWritten && store.emailLogins) || null
}

/** UNDO links stay valid: only an undo uses them up. Call it inside a transaction that has locked the user's row. */
export async function endOneShots(ctx: AuthContext, { id, email }: Pick<UserRecord, 'id' | 'email'>): Promise<void> {
  await ctx.store.userTokens.consumeAllForUser(id, ctx.now())
  await endLoginTasks(ctx, id)
  await emailLoginsOf(ctx)?.consumeAllForEmail(email, ctx.now())
}
