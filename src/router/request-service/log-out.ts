import type { Request } from 'express'
import Joi from 'joi'
import { refuseExpiredToken } from '../../accounts/email-verification/signup-ownership'
import type { AuthContext } from '../../context'
import { UnauthorizedError } from '../../core/errors'
import { type Route, step, withBody } from '../../http/routes'
import { refuseCrossSite } from '../../http/same-site'
import { text } from '../../http/validate'
import { readCredential } from '../../sessions/credentials'
import { isAnyOurs, type LogoutTokens } from '../../sessions/log-out'
import {
  clearSessionCookies,
  type LogoutBody,
  type LogoutRules,
  logOutRequest,
  logoutAnswers,
  logoutFields,
  sendLoggedOut,
  tokensOfCookies,
} from '../../sessions/log-out-request'
import { logoutSummary } from '../../sessions/logout-by-cookie'

/**
 * The logout of `auth.with(req, res)` and of the pages, at any path of the host. An access token in the header names the session by itself,
 * and cookies then do not count. If no token of the request is ours, the logout fails after it cleared the cookies, because nobody was
 * logged out.
 * @throws UnauthorizedError; TokenExpiredError for all sessions by an expired access token alone: refresh first
 */
export function logoutOfHost(ctx: AuthContext, rules: LogoutRules): Pick<Route, 'method' | 'before' | 'handle'> {
  return withBody({
    method: 'POST',
    path: '/logout',
    describes: { summary: logoutSummary, answers: logoutAnswers },
    before: [
      step((req) => {
        if (takesCookies(ctx, req)) refuseCrossSite(ctx, req)
      }),
    ],
    body: Joi.object<LogoutBody>({ ...logoutFields, refresh_token: text(4096).optional() }),
    handle: async (req, res, body) => {
      const isByCookies = takesCookies(ctx, req)
      const tokens = tokensOfHost(ctx, req, body, isByCookies)
      // An expired token ends its own session at most, and a logout everywhere must not end less than it was asked to.
      if (body.all_sessions && body.refresh_token === undefined && !isByCookies) await refuseExpiredToken(ctx, req)
      const ended = await logOutRequest(ctx, rules, [req, res], tokens, body)
      if (isByCookies) clearSessionCookies(ctx, req, res)
      if (!isAnyOurs(ctx, tokens)) throw new UnauthorizedError()
      sendLoggedOut(ctx, res, ended, body)
    },
  })
}

function tokensOfHost(ctx: AuthContext, req: Request, { refresh_token: given }: LogoutBody, isByCookies: boolean): LogoutTokens {
  const presented: LogoutTokens = isByCookies ? tokensOfCookies(ctx, req) : { accessToken: bearerOf(ctx, req) }
  return given === undefined ? presented : { ...presented, refreshToken: given }
}

/** Returns false in delivery `bearer`, and in `both` for a request with an access token in the header. */
function takesCookies(ctx: AuthContext, req: Request): boolean {
  const { tokenDelivery } = ctx.settings
  return tokenDelivery !== 'bearer' && !(tokenDelivery === 'both' && bearerOf(ctx, req) !== null)
}

/** Returns the access token in the header. Null without one. A malformed header still is a header, so it gives an invalid token. */
function bearerOf(ctx: AuthContext, req: Request): string | null {
  try {
    const credential = readCredential(ctx, req)
    return credential?.from === 'header' ? credential.token : null
  } catch {
    return ''
  }
}
