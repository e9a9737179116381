import { randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { readProofCookie, setProofCookie } from '../sessions/proof-cookies'
import type { Attempt } from './state-cookie'

const browserCookieName = 'oauth_browser'

/**
 * Returns a random id that marks the browser of a login. Another subdomain can plant an attempt of its own in a victim's browser, but not the
 * cookie of this mark. Returns null if no response sets cookies of a login, or without `cookieSecure`.
 */
export function browserOf(ctx: AuthContext, req: Request): string | null {
  const { tokenDelivery, cookieSecure } = ctx.settings
  if (tokenDelivery === 'bearer' || !cookieSecure) return null
  return readProofCookie(ctx, req, browserCookieName) ?? randomBytes(16).toString('base64url')
}

/** Sets the mark's cookie, for as long as an attempt can last. */
export function markBrowser(ctx: AuthContext, res: Response, id: string | null): void {
  if (id !== null) setProofCookie(ctx, res, browserCookieName, id, ctx.settings.oauthStateTtlSeconds)
}

/** Returns false if another browser began the attempt. Without `cookieSecure` every browser counts as the same. */
export function isOfThisBrowser(ctx: AuthContext, req: Request, attempt: Attempt): boolean {
  const browser = attempt.purpose === 'login' ? attempt.browser : null
  return !ctx.settings.cookieSecure || (browser !== null && readProofCookie(ctx, req, browserCookieName) === browser)
}
