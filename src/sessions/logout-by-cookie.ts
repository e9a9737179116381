import Joi from 'joi'
import type { AuthContext } from '../context'
import { type Route, withBody } from '../http/routes'
import { sameSite } from '../http/same-site'
import {
  clearSessionCookies,
  type LogoutBody,
  type LogoutRules,
  logOutRequest,
  logoutAnswers,
  logoutFields,
  logoutLimit,
  sendLoggedOut,
  tokensOfCookies,
} from './log-out-request'
import { clearSessionCookie, readSessionCookie } from './session-cookie'

export const logoutSummary = 'Log out: revoke the session of this browser, or all sessions of the account'

/**
 * Revokes every live session that a cookie of the browser names, and clears the cookies. Always responds with 204 (200 with
 * `provider_logout`), because a logout requires no login.
 */
export function logoutByCookies(ctx: AuthContext, path: '/logout' | '/cookie/logout', rules: LogoutRules): Route {
  return withBody({
    method: 'POST',
    path,
    describes: {
      summary: logoutSummary,
      answers: logoutAnswers,
      credential: ctx.settings.tokenDelivery === 'session' ? 'session_cookie' : 'refresh_cookie',
      limit: logoutLimit,
    },
    before: [sameSite(ctx)],
    body: Joi.object<LogoutBody>(logoutFields),
    handle: async (req, res, body) => {
      const ended = await logOutRequest(ctx, rules, [req, res], tokensOfCookies(ctx, req), body)
      clearSessionCookies(ctx, req, res)
      sendLoggedOut(ctx, res, ended, body)
    },
  })
}

/** Revokes only the server-side session of the cookie, in every delivery. */
export function logoutOfSession(ctx: AuthContext, rules: LogoutRules): Route {
  return withBody({
    method: 'POST',
    path: '/session/logout',
    describes: { summary: logoutSummary, answers: logoutAnswers, credential: 'session_cookie', limit: logoutLimit },
    before: [sameSite(ctx)],
    body: Joi.object<LogoutBody>(logoutFields),
    handle: async (req, res, body) => {
      const ended = await logOutRequest(ctx, rules, [req, res], { sessionToken: readSessionCookie(ctx, req) }, body)
      clearSessionCookie(ctx, res)
      sendLoggedOut(ctx, res, ended, body)
    },
  })
}
