import { createHmac, type KeyObject } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { constantTimeEqual } from '../core/constant-time-equal'
import { findKey, type Keys } from '../core/keys'
import { type CookieScope, clearCookie, readCookie, setCookie } from '../http/cookies'

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
