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
 * Returns who is signed in in this browser, by a session that is alive. In deliveries with token cookies the refresh cookie says who: it is
 * not used up, so two tabs that open at once both stay signed in, and the answer sets a new access cookie. An access cookie alone says
 * nothing.
 */
export async function findSignedIn(site: PageSite, req: Request, res: Response): Promise<SessionOfRequest | null> {
  if (!(await hasLogin(site, req, res))) return null
  const steps: readonly RequestHandler[] = [site.guards.requireAuth(), aliveSession(site.ctx)]
  const handle: Route['handle'] = (asked, answer) => {
    noteOutcome(answer, requestSessionOf(asked))
    sendEmpty(answer)
  }
  try {
    return (await playRoute({ method: 'GET', before: steps, handle }, withoutBearer(req), res, {})) as SessionOfRequest // what the handler notes
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
 * Where the store keeps no sessions, only the access token that `/reauthenticate` gave says that the person was confirmed after the login.
 * A new one would take that back at the next page. Null: the cookie's is of no later confirmation, of another account, or too old.
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

/** A page goes by cookies alone: the header of a program says nothing about who looks at it. */
export function withoutBearer(req: Request): Request {
  const { authorization: _none, ...headers } = req.headers
  return Object.defineProperty(Object.create(req) as Request, 'headers', { value: headers, writable: true })
}
