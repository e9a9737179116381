import { createHmac, type KeyObject } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import type { Settings } from '../core/config/every-setting'
import type { GuardSettings } from '../core/config/guard-settings'
import { TokenExpiredError } from '../core/errors'
import { type AccessKey, findKey, type KeyList, type Keys } from '../core/keys'
import { constantTimeEqual } from '../core/opaque-token'
import type { TextKey } from '../core/texts/phrase-book'
import { type CookieScope, type CookieSite, clearCookie, readCookie, setCookie } from '../http/cookies'
import { verifyAccessToken } from './access-token'
import { readSessionToken } from './find-session'
import type { SessionOrigin } from './login'

interface SessionCookieContext {
  readonly settings: GuardSettings
  /** The router's prefix. Guards without a router have no prefix. */
  readonly prefix?: string
}

interface SessionCookie {
  readonly sessionToken: string
  readonly expiresAt: Date
  /** False: the browser deletes the cookie when it closes. Default true. */
  readonly isPersistent?: boolean
}

/** Sets the session cookie, with the lifetime of the session. */
export function setSessionCookie(
  ctx: SessionCookieContext & { now: () => Date },
  res: Response,
  { sessionToken, expiresAt, isPersistent = true }: SessionCookie,
): void {
  const maxAgeSeconds = isPersistent ? Math.floor((expiresAt.getTime() - ctx.now().getTime()) / 1000) : null
  setCookie(ctx, res, ctx.settings.sessionCookieName, sessionToken, { ...scope(ctx.settings), maxAgeSeconds })
}

export function clearSessionCookie(ctx: SessionCookieContext, res: Response): void {
  clearCookie(ctx, res, ctx.settings.sessionCookieName, scope(ctx.settings))
}

export function readSessionCookie(ctx: SessionCookieContext, req: Request): string | null {
  return readCookie(ctx, req, ctx.settings.sessionCookieName)
}

export function sessionOriginOf(ctx: AuthContext, req: Request): SessionOrigin {
  return { ip: req.ip, userAgent: req.headers['user-agent'], sessionToken: readSessionCookie(ctx, req) }
}

/** Returns the scope of the cookie. The path is `/`, because the host's own routes use the cookie too. */
function scope({ cookieSamesite }: GuardSettings) {
  return { path: '/', sameSite: cookieSamesite }
}

interface OwnKeys {
  readonly settings: Parameters<typeof verifyAccessToken>[0]['settings'] & Pick<Settings, 'accessCookieName' | 'sessionCookieName'>
  /** Null: the keys are published by another process, so no check is possible without waiting. */
  readonly accessKeys: readonly AccessKey[] | null
  /** Null: a guard without the secret. */
  readonly sessionTokenKeys: KeyList | null
  readonly now: () => Date
  /** Checks of further cookies, by name. */
  readonly more?: Readonly<Record<string, (value: string) => boolean>>
}

/** Returns a function that says whether a key of this deployment made a value of a cookie. An expired value counts too. */
export function ownCookies({ settings, accessKeys, sessionTokenKeys, now, more = {} }: OwnKeys): NonNullable<CookieSite['isOwnCookie']> {
  const isOwn: Readonly<Record<string, (value: string) => boolean>> = {
    ...more,
    [settings.sessionCookieName]: (value) => sessionTokenKeys !== null && readSessionToken(sessionTokenKeys, 'session', value) !== null,
    [settings.accessCookieName]: (value) => accessKeys !== null && isOwnAccessToken({ settings, accessKeys, now }, value),
  }
  return (name, value) => (Object.hasOwn(isOwn, name) ? (isOwn[name]?.(value) ?? false) : false)
}

function isOwnAccessToken(ctx: Parameters<typeof verifyAccessToken>[0], token: string): boolean {
  try {
    return verifyAccessToken(ctx, token) !== null
  } catch (error) {
    return error instanceof TokenExpiredError
  }
}

/**
 * Context of signed cookies. For example, a signed cookie shows which browser signed up. Another subdomain can set a cookie for the whole
 * site. So each value has a MAC. The `__Host-` prefix (RFC 6265bis section 4.1.3.2) also prevents other subdomains from setting the cookie.
 * The MAC covers the cookie's name and its expiry. So a value is invalid in another cookie and after that time.
 */
export interface ProofCookieContext extends ProofReadContext, Pick<AuthContext, 'prefix'> {}

/** The part of the context that reads signed cookies. */
export interface ProofReadContext extends Pick<AuthContext, 'now'> {
  readonly settings: Pick<AuthContext['settings'], 'cookieDomain' | 'cookieSecure'>
  readonly keys: Pick<Keys, 'proof-cookie'>
}

/**
 * Sets the cookie `__Host-<name>` with Path=/. If `cookieSecure` is off, sets `<name>` below the prefix.
 * @param value any text; the browser can read the value, so it must not contain a server's secret
 * @param options.path '/' for a cookie that must reach every path of the host, also if `cookieSecure` is off
 * @param options.sameSite 'none' for a cookie that must come with another site's form; browsers accept 'none' only with `cookieSecure`
 */
export function setProofCookie(
  ctx: ProofCookieContext,
  res: Response,
  name: string,
  value: string,
  maxAgeSeconds: number,
  { sameSite = 'lax', ...place }: { sameSite?: CookieScope['sameSite']; path?: '/' } = {},
): void {
  const { fullName, scope } = cookiePlaceOf(ctx, name)
  const encoded = Buffer.from(value, 'utf8').toString('base64url')
  const end = String(Math.floor(ctx.now().getTime() / 1000) + maxAgeSeconds)
  const sealed = [encoded, end, macOf(ctx.keys['proof-cookie'][0], fullName, encoded, end)].join('.')
  setCookie(ctx, res, fullName, sealed, { ...scope, ...place, sameSite, maxAgeSeconds })
}

/** Returns the value that we set. Null: the cookie is absent, not ours, expired, or was sent twice. */
export function readProofCookie(ctx: ProofReadContext, req: Request, name: string): string | null {
  const fullName = fullNameOf(ctx, name)
  const isOwnCookie = (_name: string, value: string) => isOwnProof(ctx, fullName, value)
  const value = readCookie({ ...ctx, isOwnCookie }, req, fullName) ?? ''
  const [encoded = '', end] = value.split('.')
  return isOwnProof(ctx, fullName, value) && Number(end) * 1000 > ctx.now().getTime()
    ? Buffer.from(encoded, 'base64url').toString('utf8')
    : null
}

function isOwnProof({ keys }: ProofReadContext, fullName: string, value: string): boolean {
  const [encoded, end, mac, ...rest] = value.split('.')
  if (encoded === undefined || end === undefined || mac === undefined || rest.length > 0) return false
  return findKey(keys['proof-cookie'], (key) => constantTimeEqual(macOf(key, fullName, encoded, end), mac)) !== -1
}

export function clearProofCookie(ctx: ProofCookieContext, res: Response, name: string): void {
  const { fullName, scope } = cookiePlaceOf(ctx, name)
  clearCookie(ctx, res, fullName, scope)
}

/**
 * Returns the name and scope of a cookie. The cookie is Lax, because the browser must send some of these cookies when the person opens a
 * link from a mail. The cookie is only for this host, even if `cookieDomain` is set.
 */
export function cookiePlaceOf({ settings, prefix }: Pick<ProofCookieContext, 'settings' | 'prefix'>, name: string) {
  const path = settings.cookieSecure ? '/' : prefix
  return { fullName: fullNameOf({ settings }, name), scope: { path, sameSite: 'lax', hostOnly: true } as const }
}

function fullNameOf({ settings }: Pick<ProofReadContext, 'settings'>, name: string): string {
  return settings.cookieSecure ? `__Host-${name}` : name
}

function macOf(key: KeyObject, fullName: string, encoded: string, end: string): string {
  return createHmac('sha256', key)
    .update(JSON.stringify([fullName, encoded, end]))
    .digest('base64url')
}

/** A login that waits for its second factor, and the page to open afterwards. */
export interface KeptChallenge {
  readonly mfaToken: string
  /** The validated `return_to`. Null: use `landing`. */
  readonly returnTo: string | null
  /** The page to open without `returnTo`. Default: the account page. */
  readonly landing?: string
}

const challengeCookieName = 'mfa_challenge'

/** Stores the challenge in a cookie. The challenge is not in a URL, because logs and the browser history keep URLs. */
export function keepChallenge(ctx: AuthContext, res: Response, challenge: KeptChallenge): void {
  setProofCookie(ctx, res, challengeCookieName, JSON.stringify(challenge), ctx.settings.mfaTokenTtlSeconds)
}

export function readChallengeCookie(ctx: AuthContext, req: Request): KeptChallenge | null {
  return JSON.parse(readProofCookie(ctx, req, challengeCookieName) ?? 'null') as KeptChallenge | null // our MAC is valid, so `keepChallenge` wrote it
}

export function clearChallenge(ctx: AuthContext, res: Response): void {
  clearProofCookie(ctx, res, challengeCookieName)
}

/** Names a message of a page. The name is the end of the text key, such as `not_saved` of `notice.not_saved`. */
export type NoticeWord = TextKey extends infer Key ? (Key extends `notice.${infer Word}` ? Word : never) : never

const noticeCookieName = 'auth_notice'
const seconds = 60

/** Stores a message for the next page. The cookie has a MAC, so an attacker's link cannot choose the message of a page. */
export function leaveNotice(ctx: AuthContext, res: Response, word: NoticeWord): void {
  setProofCookie(ctx, res, noticeCookieName, word, seconds)
}

/** Returns the stored message once, and clears the cookie. */
export function takeNotice(ctx: AuthContext, req: Request, res: Response): NoticeWord | null {
  const word = readProofCookie(ctx, req, noticeCookieName)
  if (word !== null) clearProofCookie(ctx, res, noticeCookieName)
  return word as NoticeWord | null // our MAC is valid, so `leaveNotice` wrote it
}
