import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { after } from '../session/instants'
import { epochSeconds, readPrivateToken, signPrivateToken } from '../session/private-token'
import { clearProofCookie, readProofCookie, setProofCookie } from '../session/proof-cookies'

const cookieName = 'email_login'
const typ = 'email-login'

/**
 * Remembers in the browser which login by email it asked for: a code works in this browser alone. The value is the same kind of random id
 * whether anybody has the address or not.
 */
export function rememberRequest(ctx: AuthContext, res: Response, requestId: string): void {
  setProofCookie(ctx, res, cookieName, requestId, ctx.settings.emailLoginTtlSeconds)
}

/** The request that this browser made last; null: none that could still be confirmed. */
export function requestOfBrowser(ctx: AuthContext, req: Request): string | null {
  return readProofCookie(ctx, req, cookieName)
}

export function forgetRequest(ctx: AuthContext, res: Response): void {
  clearProofCookie(ctx, res, cookieName)
}

/** The same for clients that keep no cookies: `request_token` of the answer. */
export function signRequestToken(ctx: AuthContext, requestId: string): string {
  const now = ctx.now()
  const exp = epochSeconds(after(now, ctx.settings.emailLoginTtlSeconds))
  return signPrivateToken(ctx.keys['email-login'][0], { exp, iat: epochSeconds(now), jti: requestId, typ })
}

/** Null: it is not ours, or it has ended. */
export function readRequestToken(ctx: AuthContext, token: string): string | null {
  const claims = readPrivateToken(ctx.keys['email-login'], token, { typ, at: ctx.now() })
  return claims && String(claims['jti'])
}
