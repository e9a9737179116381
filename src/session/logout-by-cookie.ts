import Joi from 'joi'
import type { AuthContext } from '../context'
import { type Route, withBody } from '../http/routes'
import { sameSite } from '../http/same-site'
import {
  type LogoutBody,
  type LogoutRules,
  logOutRequest,
  logoutAnswers,
  logoutFields,
  logoutLimit,
  sendLoggedOut,
} from './log-out-request'
import { clearSessionCookie, readSessionCookie } from './session-cookie'

/**
 * Revokes the server-side session of the cookie, and clears the cookie. Always responds with 204 (200 with `provider_logout`), because a
 * logout requires no login.
 */
export function logoutByCookie(ctx: AuthContext, path: '/logout' | '/session/logout', rules: LogoutRules): Route {
  return withBody({
    method: 'POST',
    path,
    describes: {
      summary: 'Log out: revoke the session of this browser, or all sessions of the account',
      answers: logoutAnswers,
      credential: 'session_cookie',
      limit: logoutLimit,
    },
    before: [sameSite(ctx)],
    body: Joi.object<LogoutBody>(logoutFields),
    handle: async (req, res, body) => {
      const presented = { kind: 'session', token: readSessionCookie(ctx, req), allSessions: body.all_sessions } as const
      const ended = await logOutRequest(ctx, rules, [req, res], presented)
      clearSessionCookie(ctx, res)
      sendLoggedOut(ctx, res, ended, body)
    },
  })
}
