import type { AuthContext } from '../../context'
import { hashOpaqueToken } from '../../core/opaque-token'
import { browserName } from '../../http/locale'
import type { LinkCode } from '../../mail/mail-queue'
import { after } from '../../sessions/find-session'
import { plainText } from '../../sessions/insert-session'
import { hashCode, type LinkToken, newCode } from '../email-links/email-link'
import { mayMailCode } from './code-limit'
import { type CodeRequest, codeSeconds, codesOf, isNewestOfBrowser } from './code-request'

/** Call it in the transaction that makes the link. Null: the mail has the link alone. */
export type IssueCode = (ctx: AuthContext, link: LinkToken) => Promise<LinkCode | null>

/** Call it before the transaction. @param options.email to which the mail goes */
export async function codeIssuer(
  ctx: AuthContext,
  request: CodeRequest | null | undefined,
  { email, isKnownDevice = false }: { email: string; isKnownDevice?: boolean },
): Promise<IssueCode> {
  if (!request || !(await mayMailCode(ctx, { email, isKnownDevice })) || !(await isNewestOfBrowser(ctx, request.id)))
    return async () => null
  return (ctx, link) => issue(ctx, request, link, { email, isKnownDevice })
}

async function issue(
  ctx: AuthContext,
  { id, purpose, ip, userAgent }: CodeRequest,
  { token, url }: LinkToken,
  to: { email: string; isKnownDevice: boolean },
): Promise<LinkCode> {
  const now = ctx.now()
  const digits = newCode()
  const expiresAt = after(now, codeSeconds)
  await codesOf(ctx).insert({
    ...to,
    id,
    purpose,
    tokenHash: hashOpaqueToken(token),
    codeHash: hashCode(ctx, id, digits),
    tries: 0,
    returnTo: null,
    ip: plainText(ip, 45),
    userAgent: plainText(userAgent, 512),
    createdAt: now,
    expiresAt,
    usedAt: null,
    sessionId: null,
  })
  const host = new URL(ctx.settings.publicUrl || url).host
  return { digits, host: host === '' ? null : host, expiresAt, asked: { at: now, browser: browserName(userAgent ?? '') } }
}
