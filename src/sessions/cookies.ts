import { createHmac, type KeyObject } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { hintCookieName, type Settings } from '../core/config/every-setting'
import type { GuardSettings } from '../core/config/guard-settings'
import { TokenExpiredError } from '../core/errors'
import { type AccessKey, findKey, type KeyList, type Keys } from '../core/keys'
import { constantTimeEqual } from '../core/opaque-token'
import type { TextKey } from '../core/texts/phrase-book'
import { type CookieScope, type CookieSite, clearCookie, cookieNames, readCookie, setCookie } from '../http/cookies'
import { readTaskToken } from '../login-tasks/task-token'
import { verifyAccessToken } from './access-token'
import { readSessionToken } from './find-session'
import type { SessionOrigin, TokenPair } from './login'
import type { ReissuedTokens, RenewedTokens } from './reissue-tokens'

interface SessionCookieContext {
  readonly settings: GuardSettings
  /** Guards without a router have no prefix. */
  readonly prefix?: string
}

interface SessionCookie {
  readonly sessionToken: string
  readonly expiresAt: Date
  /** False: the browser deletes the cookie when it closes. Default true. */
  readonly isPersistent?: boolean
}

export function setSessionCookie(
  ctx: SessionCookieContext & { now: () => Date },
  res: Response,
  { sessionToken, expiresAt, isPersistent = true }: SessionCookie,
): void {
  const maxAgeSeconds = isPersistent ? Math.floor((expiresAt.getTime() - ctx.now().getTime()) / 1000) : null
  setCookie(ctx, res, ctx.settings.sessionCookieName, sessionToken, { ...scope(ctx.settings), maxAgeSeconds })
  setHint(ctx, res, maxAgeSeconds)
}

export function clearSessionCookie(ctx: SessionCookieContext, res: Response): void {
  clearCookie(ctx, res, ctx.settings.sessionCookieName, scope(ctx.settings))
  clearHint(ctx, res)
}

/** Tells scripts that somebody may be signed in. The cookie opens nothing, because every script and every subdomain can set it. */
function setHint(ctx: SessionCookieContext, res: Response, maxAgeSeconds: number | null): void {
  setCookie(ctx, res, hintCookieName, '1', { ...scope(ctx.settings), isReadable: true, maxAgeSeconds })
}

export function clearHint(ctx: SessionCookieContext, res: Response): void {
  clearCookie(ctx, res, hintCookieName, { ...scope(ctx.settings), isReadable: true })
}

export function hasHint(req: Request): boolean {
  return cookieNames(req).includes(hintCookieName)
}

export function readSessionCookie(ctx: SessionCookieContext, req: Request): string | null {
  return readCookie(ctx, req, ctx.settings.sessionCookieName)
}

export function sessionOriginOf(ctx: AuthContext, req: Request): SessionOrigin {
  return { ip: req.ip, userAgent: req.headers['user-agent'], sessionToken: readSessionCookie(ctx, req) }
}

/** The host's own routes use the cookie too. */
function scope({ cookieSamesite }: GuardSettings) {
  return { path: '/', sameSite: cookieSamesite }
}

interface OwnKeys {
  readonly settings: Parameters<typeof verifyAccessToken>[0]['settings'] & Pick<Settings, 'accessCookieName' | 'sessionCookieName'>
  /** Null: another process publishes the keys, so no check is possible without waiting. */
  readonly accessKeys: readonly AccessKey[] | null
  /** Null: a guard without the secret. */
  readonly sessionTokenKeys: KeyList | null
  readonly now: () => Date
  /** Further cookies, by name. */
  readonly more?: Readonly<Record<string, (value: string) => boolean>>
}

/** An expired value counts too. */
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
 * Another subdomain can set a cookie for the whole site. So each value has a MAC over the cookie's name and its expiry, and the `__Host-`
 * prefix (RFC 6265bis section 4.1.3.2) prevents other subdomains from setting the cookie.
 */
export interface ProofCookieContext extends ProofReadContext, Pick<AuthContext, 'prefix'> {}

export interface ProofReadContext extends Pick<AuthContext, 'now'> {
  readonly settings: Pick<AuthContext['settings'], 'cookieDomain' | 'cookieSecure'>
  readonly keys: Pick<Keys, 'proof-cookie'>
}

/**
 * Sets `__Host-<name>` with Path=/, or `<name>` below the prefix if `cookieSecure` is off.
 * @param value the browser can read it, so it must not contain a server's secret
 * @param options.path '/' for a cookie that must reach every path of the host, also if `cookieSecure` is off
 * @param options.sameSite 'none' for a cookie that must come with another site's form; browsers then demand `cookieSecure`
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

/** Null: the cookie is absent, not ours, expired, or was sent twice. */
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

/** Lax, because some of these cookies must come when the person opens a link from a mail. Only for this host, despite `cookieDomain`. */
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

export interface KeptChallenge {
  readonly mfaToken: string
  /** Validated. Null: use `landing`. */
  readonly returnTo: string | null
  /** Default: the account page. */
  readonly landing?: string
}

const challengeCookieName = 'mfa_challenge'

/** Not in a URL, because logs and the browser history keep URLs. */
export function keepChallenge(ctx: AuthContext, res: Response, challenge: KeptChallenge): void {
  setProofCookie(ctx, res, challengeCookieName, JSON.stringify(challenge), ctx.settings.mfaTokenTtlSeconds)
}

export function readChallengeCookie(ctx: AuthContext, req: Request): KeptChallenge | null {
  return JSON.parse(readProofCookie(ctx, req, challengeCookieName) ?? 'null') as KeptChallenge | null // our MAC is valid, so `keepChallenge` wrote it
}

export function clearChallenge(ctx: AuthContext, res: Response): void {
  clearProofCookie(ctx, res, challengeCookieName)
}

/** The end of a text key, such as `not_saved` of `notice.not_saved`. */
export type NoticeWord = TextKey extends infer Key ? (Key extends `notice.${infer Word}` ? Word : never) : never

export interface KeptTasks {
  readonly taskToken: string
  /** Validated. Null: the token names the page, or the person goes to the account page. */
  readonly returnTo: string | null
}

const tasksCookieName = 'login_tasks'

/**
 * Only our pages read it. Not in a URL, because logs and the browser history keep URLs. The destination of the token is not kept twice,
 * because browsers ignore a cookie of more than 4096 bytes.
 */
export function keepTasks(ctx: AuthContext, res: Response, { taskToken, returnTo }: KeptTasks): void {
  const { tasks, destination } = readTaskToken(ctx, taskToken)
  const isInToken = destination && 'returnTo' in destination && destination.returnTo === returnTo
  const kept: KeptTasks = { taskToken, returnTo: isInToken ? null : returnTo }
  setProofCookie(ctx, res, tasksCookieName, JSON.stringify(kept), Math.floor((tasks.endsAt.getTime() - ctx.now().getTime()) / 1000))
}

export function readTasksCookie(ctx: AuthContext, req: Request): KeptTasks | null {
  return JSON.parse(readProofCookie(ctx, req, tasksCookieName) ?? 'null') as KeptTasks | null // our MAC is valid, so `keepTasks` wrote it
}

export function clearTasks(ctx: AuthContext, res: Response): void {
  clearProofCookie(ctx, res, tasksCookieName)
}

/** With a session, this browser has nothing left to do. */
export function endTasks(ctx: AuthContext, res: Response): void {
  if (ctx.loginTasks !== null && readTasksCookie(ctx, res.req) !== null) clearTasks(ctx, res)
}

const noticeCookieName = 'auth_notice'
const seconds = 60

/** The cookie has a MAC, so an attacker's link cannot choose the message of a page. */
export function leaveNotice(ctx: AuthContext, res: Response, word: NoticeWord): void {
  setProofCookie(ctx, res, noticeCookieName, word, seconds)
}

export function takeNotice(ctx: AuthContext, req: Request, res: Response): NoticeWord | null {
  const word = readProofCookie(ctx, req, noticeCookieName)
  if (word !== null) clearProofCookie(ctx, res, noticeCookieName)
  return word as NoticeWord | null // our MAC is valid, so `leaveNotice` wrote it
}

/** Without a new refresh token, the refresh cookie stays unchanged. */
export function setTokenCookies(ctx: AuthContext, res: Response, result: TokenPair | ReissuedTokens): void {
  const { settings } = ctx
  const { accessToken, refreshToken, refreshTokenExpiresAt, isPersistent = true } = result
  setCookie(ctx, res, settings.accessCookieName, accessToken, {
    ...accessScope(settings),
    maxAgeSeconds: isPersistent ? settings.accessTokenTtlSeconds : null,
  })
  if (refreshToken !== null && refreshTokenExpiresAt !== null)
    setRefreshCookie(ctx, res, { refreshToken, refreshTokenExpiresAt, isPersistent })
}

export function setRefreshCookie(
  ctx: AuthContext,
  res: Response,
  { refreshToken, refreshTokenExpiresAt, isPersistent }: RenewedTokens,
): void {
  const seconds = Math.floor((refreshTokenExpiresAt.getTime() - ctx.now().getTime()) / 1000)
  const maxAgeSeconds = isPersistent ? seconds : null
  setCookie(ctx, res, ctx.settings.refreshCookieName, refreshToken, { ...refreshScope(ctx), maxAgeSeconds })
  setHint(ctx, res, maxAgeSeconds)
}

export function readAccessCookie(ctx: AuthContext, req: Request): string | null {
  return readCookie(ctx, req, ctx.settings.accessCookieName)
}

export function clearLoginCookies(ctx: AuthContext, res: Response): void {
  clearCookie(ctx, res, ctx.settings.accessCookieName, accessScope(ctx.settings))
  clearCookie(ctx, res, ctx.settings.refreshCookieName, refreshScope(ctx))
  clearHint(ctx, res)
}

export function readRefreshCookie(ctx: AuthContext, req: Request): string | null {
  return readCookie(ctx, req, ctx.settings.refreshCookieName)
}

function accessScope(settings: Settings) {
  return { path: '/', sameSite: settings.cookieSamesite }
}

/** Only the router, or with `both` and without the built-in pages only the cookie routes, gets the refresh cookie. */
function refreshScope({ settings, prefix }: AuthContext) {
  const isBelowTwins = settings.tokenDelivery === 'both' && !settings.pagesEnabled // the pages are not below `/cookie`
  return { path: isBelowTwins ? `${prefix}/cookie` : prefix, sameSite: settings.cookieSamesite }
}
