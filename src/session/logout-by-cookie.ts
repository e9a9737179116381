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

/** Ends the server-side session of the cookie, and clears it. 204, or 200 with `provider_logout`, whatever came: nobody has to be signed in to sign out. */
export function logoutByCookie(ctx: AuthContext, path: '/logout' | '/session/logout', rules: LogoutRules): Route {
  return withBody({
    method: 'POST',
    path,
    describes: {
      summary: 'End this browser’s session, or all of the account’s',
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
