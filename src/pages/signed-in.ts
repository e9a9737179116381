import type { Request, RequestHandler, Response } from 'express'
import type { AuthContext } from '../context'
import { AccountInactiveError, UnauthorizedError } from '../core/errors'
import type { Reader } from '../http/html/reader'
import { signInLocation } from '../http/return-to'
import type { Route } from '../http/routes'
import { sendEmpty, setResult, withParameter } from '../http/send'
import { callRoute } from '../router/request-service/call-route'
import { continueTokens } from '../sessions/continue'
import { readAccessCookie, readRefreshCookie, readSessionCookie, setTokenCookies } from '../sessions/cookies'
import { setsTokenCookies } from '../sessions/delivery'
import { aliveSession, requestSessionOf, type SessionOfRequest } from '../sessions/reauthentication/fresh-session'
import type { PageSite } from './page-site'

/** The refresh cookie identifies the session and stays valid, so two tabs at once stay logged in. An access cookie alone does not count. */
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

/** Pages use only cookies. */
export function withoutBearer(req: Request): Request {
  const { authorization: _none, ...headers } = req.headers
  return Object.defineProperty(Object.create(req) as Request, 'headers', { value: headers, writable: true })
}

/** Our login page can show a notice. The host's page cannot. */
export function isOurSignIn({ settings: { loginUrl, publicUrl }, prefix }: AuthContext): boolean {
  return loginUrl === null || loginUrl === `${prefix}/login` || loginUrl === `${publicUrl}${prefix}/login`
}

/** The host's page, or ours in the reader's language. With the address to return to. */
export function signInAddress(ctx: AuthContext, reader: Reader, returnTo: string | null = null): string {
  return signInLocation(ctx.settings, pageOf(ctx, reader), returnTo)
}

/** Without `switch=1`, the login page would redirect a logged-in person to the account. */
export function signInAgainAddress(ctx: AuthContext, reader: Reader, returnTo: string | null): string {
  return signInLocation(ctx.settings, withParameter(pageOf(ctx, reader), 'switch', '1'), returnTo)
}

function pageOf(ctx: AuthContext, reader: Reader): string {
  return isOurSignIn(ctx) ? reader.href('/login') : String(ctx.settings.loginUrl)
}
