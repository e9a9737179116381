import Joi from 'joi'
import type { AuthContext } from '../context'
import type { Description } from '../http/description'
import { text } from '../http/input'
import { type Route, withBody } from '../http/routes'
import {
  type LogoutBody,
  type LogoutRules,
  logOutRequest,
  logoutAnswers,
  logoutByCookies,
  logoutFields,
  logoutLimit,
  sendLoggedOut,
} from './log-out-request'
import { bodyRefresh, cookieRefresh } from './refresh'
import { type RouteSet, routesByDelivery } from './routes-by-delivery'

const token = text(4096)

const describesLogout: Description = {
  summary: 'Log out: revoke this session, or all sessions of the account',
  answers: logoutAnswers,
  limit: logoutLimit,
}

export function sessionRoutes(ctx: AuthContext, rules: LogoutRules): Route[] {
  return routesByDelivery(ctx, (line) => {
    if (line.delivery === 'bearer') return bodyRoutes(ctx, line, rules)
    const logout = logoutByCookies(ctx, `${line.base}/logout`, rules)
    return line.delivery === 'session' ? [logout] : [cookieRefresh(ctx, line), logout]
  })
}

function bodyRoutes(ctx: AuthContext, { base, before }: RouteSet, rules: LogoutRules): Route[] {
  return [
    bodyRefresh(ctx, { base, before }),
    withBody({
      method: 'POST',
      path: `${base}/logout`,
      describes: describesLogout,
      before,
      body: Joi.object<LogoutBody & { refresh_token: string }>({ refresh_token: token, ...logoutFields }),
      handle: async (req, res, body) => {
        const tokens = { refreshToken: body.refresh_token }
        sendLoggedOut(ctx, res, await logOutRequest(ctx, rules, [req, res], tokens, body), body)
      },
    }),
  ]
}
