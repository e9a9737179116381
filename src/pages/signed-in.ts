import type { Request, RequestHandler, Response } from 'express'
import { AccountInactiveError, UnauthorizedError } from '../core/errors'
import { setResult } from '../http/outcome'
import type { Route } from '../http/routes'
import { sendEmpty } from '../http/send'
import { callRoute } from '../router/request-service/call-route'
import { continueTokens } from '../sessions/continue-tokens'
import { readAccessCookie, readRefreshCookie, setsTokenCookies, setTokenCookies } from '../sessions/delivery'
import { aliveSession, requestSessionOf, type SessionOfRequest } from '../sessions/reauthentication/fresh-session'
import { readSessionCookie } from '../sessions/session-cookie'
import type { PageSite } from './page-site'

/**
 * Returns the live session of this browser; null if there is none. With token cookies, the refresh cookie identifies the session. The
 * refresh token stays valid, so two tabs that open at the same time both stay logged in. The response sets a new access cookie. An access
 * cookie without a refresh cookie does not count.
 */
export async function findSignedIn(site: PageSite, req: Request, res: Response): Promise<SessionOfRequest | null> {
  if (!(await hasLogin(site, req, res))) return null
  const steps: readonly RequestHandler[] = [site.guards.requireAuth(), aliveSession(site.ctx)]
  const handle: Route['handle'] = (asked, answer) => {
    setResult(answer, requestSessionOf(asked))
    sendEmpty(answer)
  }
  try {
    // The handler above wrote the outcome.
    return (await callRoute({ method: 'GET', before: steps, handle }, withoutBearer(req), res, {})) as SessionOfRequest
  } catch (error) {
    if (error instanceof UnauthorizedError || error instanceof AccountInactiveError) return null
    throw error
  }
}

async function hasLogin({ ctx }: PageSite, req: Request, res: Response): Promise<boolean> {
  if (!setsTokenCookies(ctx.settings.tokenDelivery)) return readSessionCookie(ctx, req) !== null
  const presented = readRefreshCookie(ctx, req)
  const tokens = presented === null ? null : await continueTokens(ctx, presented, readAccessCookie(ctx, req))
  if (tokens) setTokenCookies(ctx, res, tokens)
  return tokens !== null
}

/** Returns the request without its Authorization header, because pages use only cookies. */
export function withoutBearer(req: Request): Request {
  const { authorization: _none, ...headers } = req.headers
  return Object.defineProperty(Object.create(req) as Request, 'headers', { value: headers, writable: true })
}
