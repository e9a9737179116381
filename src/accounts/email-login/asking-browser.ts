import type { Request, Response } from 'express'
import type { AuthContext } from '../../context'
import { after } from '../../sessions/instants'
import { epochSeconds, readPrivateToken, signPrivateToken } from '../../sessions/private-token'
import { clearProofCookie, readProofCookie, setProofCookie } from '../../sessions/proof-cookies'

const cookieName = 'email_login'
const typ = 'email-login'

/**
 * Stores the id of the login request in a cookie. A code works only in the browser that requested the mail. The id is random, so the cookie
 * does not reveal whether the address has an account.
 */
export function rememberRequest(ctx: AuthContext, res: Response, requestId: string): void {
  setProofCookie(ctx, res, cookieName, requestId, ctx.settings.emailLoginTtlSeconds)
}

/** Returns the id of the login request in this browser's cookie. Returns null if the browser has no valid cookie. */
export function requestOfBrowser(ctx: AuthContext, req: Request): string | null {
  return readProofCookie(ctx, req, cookieName)
}

export function forgetRequest(ctx: AuthContext, res: Response): void {
  clearProofCookie(ctx, res, cookieName)
}

/** Returns the `request_token`. Clients without cookies use this token instead of the cookie. */
export function signRequestToken(ctx: AuthContext, requestId: string): string {
  const now = ctx.now()
  const exp = epochSeconds(after(now, ctx.settings.emailLoginTtlSeconds))
  return signPrivateToken(ctx.keys['email-login'][0], { exp, iat: epochSeconds(now), jti: requestId, typ })
}

/** Returns the id of the login request in a `request_token`. Returns null if the token is invalid or expired. */
export function readRequestToken(ctx: AuthContext, token: string): string | null {
  const claims = readPrivateToken(ctx.keys['email-login'], token, { typ, at: ctx.now() })
  return claims && String(claims['jti'])
}
