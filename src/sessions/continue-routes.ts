import type { Request, RequestHandler, Response } from 'express'
import type { AuthContext } from '../context'
import { CsrfValidationFailedError, ValidationError } from '../core/errors'
import { string } from '../http/description'
import { queryValues } from '../http/query-parameter'
import { locationOf, readReturnTo } from '../http/return-to'
import type { Route } from '../http/routes'
import { refuseEmbedding, refusingCrossSite } from '../http/same-site'
import { sendRedirect } from '../http/send'
import { continuePath, signInLocation } from '../http/sign-in-page'
import { routeRateLimit } from '../rate-limits/route-rate-limit'
import { markPage, wasSentBack } from './continue-marker'
import { continueTokens } from './continue-tokens'
import { readAccessCookie, readRefreshCookie, setTokenCookies } from './delivery'

/**
 * Returns the route to which `requireLogin` redirects browsers. Returns no route if `loginUrl` is not set. The route opens no session, so
 * an attacker's link to the route cannot log a person in.
 */
export function continueRoutes(ctx: AuthContext): Route[] {
  const { loginUrl } = ctx.settings
  const path = continuePath(ctx.settings)
  if (path === null || loginUrl === null) return []
  return [
    {
      method: 'GET',
      path,
      describes: {
        summary: 'Renew the access cookie on the way to a page',
        query: [{ name: 'return_to', description: 'The page: a path, or a URL of a trusted origin.', schema: string, required: true }],
        answers: [
          { status: 302, description: 'To the page, with a new access cookie. If the browser has no live session: to the sign-in page.' },
        ],
        credential: 'refresh_cookie',
      },
      before: [noForeignImages(ctx), routeRateLimit(ctx, 'continue')],
      handle: async (req, res) => sendRedirect(res, await nextStop(ctx, req, res, loginUrl)),
    },
  ]
}

/**
 * Returns a middleware that rejects images and frames of other sites. Otherwise such requests could use up a person's rate limit. The
 * middleware runs before the rate limit counts the request.
 */
function noForeignImages({ settings }: AuthContext): RequestHandler {
  return refusingCrossSite((req) => {
    refuseEmbedding(settings, req)
    const mode = req.headers['sec-fetch-mode']
    const isOurs = mode === undefined || mode === 'navigate' || req.headers['sec-fetch-site'] === 'same-origin'
    if (!isOurs) throw new CsrfValidationFailedError({ details: { reason: 'site' } })
  })
}

async function nextStop(ctx: AuthContext, req: Request, res: Response, signInPage: string): Promise<string> {
  const returnTo = readReturnTo(ctx.settings, queryValues(req, 'return_to'))
  if (returnTo === null) throw new ValidationError({ details: { errors: [{ path: 'return_to', rule: 'any.required' }] } })
  const presented = readRefreshCookie(ctx, req)
  // If a browser comes back at once, the browser did not send our cookie to the page. The route must not redirect that browser in an
  // endless loop.
  const tokens =
    presented === null || wasSentBack(ctx, req, returnTo) ? null : await continueTokens(ctx, presented, readAccessCookie(ctx, req))
  if (tokens === null) return signInLocation(ctx.settings, signInPage, returnTo)
  setTokenCookies(ctx, res, tokens)
  markPage(ctx, req, res, returnTo)
  return locationOf(returnTo)
}
