import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { readCookie } from '../http/cookies'
import { verifyAccessToken } from './access-token'
import { clearSessionCookie, readSessionCookie } from './cookies'
import { clearLoginCookies, readRefreshCookie, setsTokenCookies } from './delivery'
import { isAlive, readQuietly, readSessionToken } from './find-session'

/**
 * Clears the request's cookies of ended sessions, so that the browser does not send them again. Call it after an operation that may have
 * ended sessions, and before the response sets its own cookies.
 */
export async function clearEndedCookies(ctx: AuthContext, req: Request, res: Response): Promise<void> {
  const { sessions } = ctx.store
  if (!sessions) return
  for (const { id, clear } of namedByCookies(ctx, req)) {
    const found = await sessions.find({ id })
    if (!found || !isAlive(found.session, ctx.now())) clear(ctx, res)
  }
}

interface NamedSession {
  readonly id: string
  readonly clear: (ctx: AuthContext, res: Response) => void
}

/** Returns the sessions that the cookies name, after a check of the MAC or the signature. A named session may have ended. */
function namedByCookies(ctx: AuthContext, req: Request): NamedSession[] {
  const ofTokens = setsTokenCookies(ctx.settings.tokenDelivery) ? (idOfAccessCookie(ctx, req) ?? idOfRefreshCookie(ctx, req)) : null
  const cookie = readSessionCookie(ctx, req)
  const ofCookie = cookie === null ? null : (readSessionToken(ctx.keys['session-token'], 'session', cookie)?.id ?? null)
  return [
    ...(ofTokens === null ? [] : [{ id: ofTokens, clear: clearLoginCookies }]),
    ...(ofCookie === null ? [] : [{ id: ofCookie, clear: clearSessionCookie }]),
  ]
}

function idOfAccessCookie(ctx: AuthContext, req: Request): string | null {
  const token = readCookie(ctx, req, ctx.settings.accessCookieName)
  return token === null ? null : (readQuietly(() => verifyAccessToken(ctx, token))?.sid ?? null)
}

function idOfRefreshCookie(ctx: AuthContext, req: Request): string | null {
  const token = readRefreshCookie(ctx, req)
  return token === null ? null : (readSessionToken(ctx.keys['session-token'], 'tokens', token)?.id ?? null)
}
