import type { AuthContext } from '../../context'
import { hashOpaqueToken, newOpaqueToken } from '../../core/opaque-token'
import { plainText } from '../../sessions/insert-session'
import { after } from '../../sessions/instants'
import type { EmailLoginRecord, EmailLoginStore } from '../../store/auth-store'
import { hashCode, newCode } from './email-code'
import { emailLoginUrl } from './email-link'

/** The link and the code of a mail, in plain text. They are returned once and never stored. */
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
}

/** The most open requests for an address. A known device can exceed this limit. */
const mostOpen = 5

/** Inserts the row of a mail inside the caller's transaction. Returns the link and the code for the mail. */
export async function issueEmailLogin(
  ctx: AuthContext,
  emailLogins: EmailLoginStore,
  { carries, ip, userAgent, ...given }: ToIssue,
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
  })
  return { token, url: token && emailLoginUrl(ctx, token), code, expiresAt }
}

/**
 * Invalidates the oldest open requests of an address, so that at most five requests are open after the new request. The function never
 * invalidates requests of known devices, so a known device can exceed this limit.
 * @returns false if the client is unknown and the function cannot invalidate enough requests; the client then gets no mail
 */
export async function makeRoom(
  ctx: AuthContext,
  emailLogins: EmailLoginStore,
  { email, isKnownDevice }: Pick<EmailLoginRecord, 'email' | 'isKnownDevice'>,
): Promise<boolean> {
  const open = (await emailLogins.listOpen(email, ctx.now())).filter(({ sessionId }) => sessionId === null)
  const tooMany = Math.max(0, open.length + 1 - mostOpen)
  const ofStrangers = open.filter((login) => !login.isKnownDevice).slice(0, tooMany)
  if (ofStrangers.length < tooMany && !isKnownDevice) return false
  for (const { id } of ofStrangers) await emailLogins.consume(id, ctx.now())
  return true
}
