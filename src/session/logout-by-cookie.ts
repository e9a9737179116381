import Joi from 'joi'
import type { AuthContext } from '../context'
import { done } from '../http/description'
import { type Route, withBody } from '../http/routes'
import { sameSite } from '../http/same-site'
import { sendEmpty } from '../http/send'
import { type LogoutRules, logOutRequest, logoutLimit } from './log-out-request'
import { clearSessionCookie, readSessionCookie } from './session-cookie'

/** Ends the server-side session of the cookie, and clears it. 204 whatever came: nobody has to be signed in to sign out. */
export function logoutByCookie(ctx: AuthContext, path: '/logout' | '/session/logout', rules: LogoutRules): Route {
  return withBody({
    method: 'POST',
    path,
    describes: {
      summary: 'End this browser’s session, or all of the account’s',
      answers: [done],
      credential: 'session_cookie',
      limit: logoutLimit,
    },
    before: [sameSite(ctx)],
    body: Joi.object<{ all_sessions: boolean }>({ all_sessions: Joi.boolean().optional().default(false) }),
    handle: async (req, res, body) => {
      const token = readSessionCookie(ctx, req)
      await logOutRequest(ctx, rules, [req, res], { kind: 'session', token, allSessions: body.all_sessions })
      clearSessionCookie(ctx, res)
      sendEmpty(res)
    },
  })
}
