import { randomUUID } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../../context'
import { type JsonSchema, string } from '../../http/description'
import { type CountedAttempt, tryToCount } from '../../rate-limits/rate-limiter'
import { epochSeconds, readPrivateToken, signPrivateToken } from '../../sessions/challenge'
import { readProofCookie, setProofCookie } from '../../sessions/cookies'
import { after } from '../../sessions/find-session'
import type { EmailLoginStore, LinkCodePurpose } from '../../store/auth-store'
import type { AskedFrom } from '../email-links/issue-email-login'

/** A code of a mail is valid for ten minutes, however long its link is. */
export const codeSeconds = 600

/** What a browser or client keeps of its request. It looks the same whether or not a mail was sent. */
export interface KeptRequest {
  /** Of the row in `auth_email_logins`, if a code was mailed. */
  readonly id: string
  readonly purpose: LinkCodePurpose
  /** Of a change of address: only its session may use the code. */
  readonly asker?: Asker | undefined
  /** The `signup_token` of a sign-up. */
  readonly signup?: string | undefined
}

export interface Asker {
  readonly userId: string
  /** Null if the store keeps no sessions. */
  readonly sessionId: string | null
}

export interface CodeRequest extends KeptRequest, AskedFrom {
  /** Of the request. The mail can be made much later, and after that of a newer request. */
  readonly at: Date
}

export function hasMailedCodes({ settings }: Pick<AuthContext, 'settings'>): boolean {
  return settings.mailedCodes === 'both'
}

/** The boot checks require the store. */
export function codesOf({ store }: Pick<AuthContext, 'store'>): EmailLoginStore {
  if (store.emailLogins) return store.emailLogins
  throw new Error('Codes beside mailed links need `emailLogins` in the store.')
}

/** Null while mails have no codes. */
export function newCodeRequest(ctx: AuthContext, purpose: LinkCodePurpose, from: AskedFrom = {}, asker?: Asker): CodeRequest | null {
  if (!hasMailedCodes(ctx)) return null
  return { id: randomUUID(), purpose, at: ctx.now(), ip: from.ip, userAgent: from.userAgent, asker }
}

export function codeRequestOf(ctx: AuthContext, req: Request, purpose: LinkCodePurpose, asker?: Asker): CodeRequest | null {
  return newCodeRequest(ctx, purpose, { ip: req.ip, userAgent: req.headers['user-agent'] }, asker)
}

/** The work after a response may mail a request after the browser has made a newer one. A code would then be dead on arrival. */
export async function isNewestOfBrowser(ctx: AuthContext, id: string): Promise<boolean> {
  const counted = await countNewer(ctx, id)
  await counted?.release()
  return counted !== null
}

/** A counter, because nothing may be stored that depends on the address. */
function countNewer(ctx: AuthContext, id: string): Promise<CountedAttempt | null> {
  return tryToCount(ctx, [{ name: 'codes:newer', subject: id, rateLimit: { attempts: 1, windowSeconds: codeSeconds } }])
}

const cookieName = 'mail_code'
const mostKept = 5
const typ = 'mailed-code'

/**
 * The member and the cookie of every response to a request. Ends the code of this browser's earlier request, also if nothing is mailed:
 * otherwise the earlier code would show whether the address of this request has an account.
 */
export async function keepCodeRequest(ctx: AuthContext, req: Request, res: Response, request: CodeRequest | null): Promise<TokenMember> {
  if (!request) return {}
  const { id, purpose, asker } = request
  const earlier = readKept(ctx, req)
  const newest = newestOf(earlier, purpose)
  if (newest) {
    await countNewer(ctx, newest.id)
    // Not before the response, whose time would show whether the earlier request has a row, and so whether its address has an account.
    ctx.background.runIfRoom('the end of an earlier code', () => codesOf(ctx).consume(newest.id, ctx.now()))
  }
  if (ctx.settings.tokenDelivery !== 'bearer') {
    const kept = [{ id, purpose, asker }, ...earlier].slice(0, mostKept)
    setProofCookie(ctx, res, cookieName, JSON.stringify(kept), codeSeconds)
  }
  return { request_token: signCodeToken(ctx, request) }
}

export interface TokenMember {
  readonly request_token?: string
}

/** Of a response with `keepCodeRequest`. */
export function tokenMember(ctx: Pick<AuthContext, 'settings'>): Readonly<Record<string, JsonSchema>> {
  return hasMailedCodes(ctx) ? { request_token: string } : {}
}

/** The newest request of this purpose in this browser. */
export function keptInBrowser(ctx: AuthContext, req: Request, purpose: LinkCodePurpose): KeptRequest | null {
  return newestOf(readKept(ctx, req), purpose)
}

function newestOf(kept: readonly KeptRequest[], purpose: LinkCodePurpose): KeptRequest | null {
  return kept.find((one) => one.purpose === purpose) ?? null
}

function readKept(ctx: AuthContext, req: Request): readonly KeptRequest[] {
  return JSON.parse(readProofCookie(ctx, req, cookieName) ?? '[]') as KeptRequest[] // its MAC is valid, so `keepCodeRequest` wrote it
}

/** For clients without cookies. */
export function signCodeToken(ctx: AuthContext, { id, purpose, asker, signup }: KeptRequest): string {
  const now = ctx.now()
  const exp = epochSeconds(after(now, codeSeconds))
  return signPrivateToken(ctx.keys['mailed-code'][0], { exp, iat: epochSeconds(now), jti: id, typ, prp: purpose, ask: asker, sgn: signup })
}

/** Null for an invalid or expired token, and for a token of another purpose. */
export function readCodeToken(ctx: AuthContext, token: string, purpose: LinkCodePurpose): KeptRequest | null {
  const claims = readPrivateToken(ctx.keys['mailed-code'], token, { typ, at: ctx.now() })
  if (claims?.['prp'] !== purpose) return null
  const { jti, ask, sgn } = claims as { jti: string; ask?: Asker; sgn?: string } // as `signCodeToken` wrote them
  return { id: jti, purpose, asker: ask, signup: sgn }
}
