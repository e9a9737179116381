import type { AuthContext } from '../../context'
import { hashOpaqueToken } from '../../core/opaque-token'
import { browserName } from '../../http/locale'
import type { LinkCode } from '../../mail/mail-queue'
import { after } from '../../sessions/find-session'
import { plainText } from '../../sessions/insert-session'
import type { LinkCodePurpose, UserRecord } from '../../store/auth-store'
import { hashCode, type LinkToken, newCode, replaceLink } from '../email-links/email-link'
import { mayMailCode } from './code-limit'
import { type CodeRequest, codeSeconds, codesOf, isNewestOfBrowser } from './code-request'

/** Call it in the transaction that makes the link. Null: the mail has the link alone. */
export type IssueCode = (ctx: AuthContext, link: LinkToken) => Promise<LinkCode | null>

export interface CodeIssuer {
  readonly issueCode: IssueCode
  /** The time of a request that this browser has followed with a newer one. Null: it is the newest, or mails have no codes. */
  readonly overtakenAt: Date | null
}

/** Call it before the transaction. @param options.email to which the mail goes */
export async function codeIssuer(
  ctx: AuthContext,
  request: CodeRequest | null | undefined,
  { email, isKnownDevice = false }: { email: string; isKnownDevice?: boolean },
): Promise<CodeIssuer> {
  if (!request) return { issueCode: linkAlone, overtakenAt: null }
  if (!(await isNewestOfBrowser(ctx, request.id))) return { issueCode: linkAlone, overtakenAt: request.at }
  if (!(await mayMailCode(ctx, { email, isKnownDevice }))) return { issueCode: linkAlone, overtakenAt: null }
  return { issueCode: (ctx, link) => issue(ctx, request, link, { email, isKnownDevice }), overtakenAt: null }
}

const linkAlone: IssueCode = async () => null

/**
 * `replaceLink`, with the code beside the link. Null: the work for a newer request of the same browser came first. Its link and code stay,
 * and this request makes none.
 */
export async function replaceLinkAndCode(
  ctx: AuthContext,
  user: UserRecord,
  { purpose, payload = null }: { purpose: LinkCodePurpose; payload?: string | null },
  { issueCode, overtakenAt }: CodeIssuer,
): Promise<{ link: LinkToken; code: LinkCode | null } | null> {
  if (overtakenAt && ctx.settings.singleActiveToken && (await hasLinkSince(ctx, user, purpose, overtakenAt))) return null
  const link = await replaceLink(ctx, user, purpose, payload)
  return { link, code: await issueCode(ctx, link) }
}

async function hasLinkSince({ store, now }: AuthContext, { id }: UserRecord, purpose: LinkCodePurpose, at: Date): Promise<boolean> {
  const since = at.getTime() - at.getMilliseconds() // a column can store whole seconds
  return (await store.userTokens.listOpen(id, purpose, now())).some(({ createdAt }) => createdAt.getTime() >= since)
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
