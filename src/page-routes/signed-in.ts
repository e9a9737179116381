import type { Request, RequestHandler, Response } from 'express'
import { playRoute } from '../bound-service/play-route'
import type { AuthContext } from '../context'
import { AccountInactiveError, UnauthorizedError } from '../errors'
import { readCookie } from '../http/cookies'
import { noteOutcome } from '../http/outcome'
import type { Route } from '../http/routes'
import { sendEmpty } from '../http/send'
import { verifyAccessToken } from '../session/access-token'
import { continueTokens } from '../session/continue-tokens'
import { readRefreshCookie, setsTokenCookies, setTokenCookies } from '../session/delivery'
import type { KeptTokens } from '../session/keep-session'
import { readQuietly } from '../session/read-quietly'
import { readSessionCookie } from '../session/session-cookie'
import { isSuperseded } from '../session/superseded-token'
import { aliveSession, requestSessionOf, type SessionOfRequest } from '../step-up/fresh-session'
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
    noteOutcome(answer, requestSessionOf(asked))
    sendEmpty(answer)
  }
  try {
    // The handler above wrote the outcome.
    return (await playRoute({ method: 'GET', before: steps, handle }, withoutBearer(req), res, {})) as SessionOfRequest
  } catch (error) {
    if (error instanceof UnauthorizedError || error instanceof AccountInactiveError) return null
    throw error
  }
}

async function hasLogin({ ctx }: PageSite, req: Request, res: Response): Promise<boolean> {
  if (!setsTokenCookies(ctx.settings.tokenDelivery)) return readSessionCookie(ctx, req) !== null
  const presented = readRefreshCookie(ctx, req)
  const tokens = presented === null ? null : await continueTokens(ctx, presented)
  if (tokens) setTokenCookies(ctx, res, { ...tokens, accessToken: (await confirmedToken(ctx, req, tokens)) ?? tokens.accessToken })
  return tokens !== null
}

/**
 * Returns the access token of the cookie if its `auth_time` is later than that of the new access token in `tokens`. Without a session
 * table, only the token that `/reauthenticate` set records that the person confirmed a credential, so the new token would lose this record.
 * Returns null if the store keeps sessions, or if the token of the cookie is not later, belongs to another account, or is too old.
 */
async function confirmedToken(ctx: AuthContext, req: Request, { accessToken }: KeptTokens): Promise<string | null> {
  const { sessions, users } = ctx.store
  const token = sessions ? null : readCookie(ctx, req, ctx.settings.accessCookieName)
  const claims = token === null ? null : readQuietly(() => verifyAccessToken(ctx, token))
  if (!claims) return null
  const { sub, auth_time: lastTime = 0 } = verifyAccessToken(ctx, accessToken)
  if (claims.sub !== sub || (claims.auth_time ?? 0) <= lastTime) return null
  const user = await users.find(sub)
  return user && !isSuperseded(ctx, claims, user) ? token : null
}

/** Returns the request without its Authorization header, because pages use only cookies. */
export function withoutBearer(req: Request): Request {
  const { authorization: _none, ...headers } = req.headers
  return Object.defineProperty(Object.create(req) as Request, 'headers', { value: headers, writable: true })
}
