import Joi from 'joi'
import type { AuthContext } from '../context'
import { AccountInactiveError, InvalidTokenError, UnauthorizedError } from '../core/errors'
import type { Description } from '../http/description'
import { type Route, withBody } from '../http/routes'
import { text } from '../http/validate'
import { loginAnswer, readRefreshCookie, sendRefreshed } from './delivery'
import { clearEndedCookies } from './ended-cookies'
import {
  type LogoutBody,
  type LogoutRules,
  logOutRequest,
  logoutAnswers,
  logoutFields,
  logoutLimit,
  sendLoggedOut,
} from './log-out-request'
import { logoutByCookies } from './logout-by-cookie'
import { refresh } from './refresh'
import { type RouteSet, routesByDelivery } from './routes-by-delivery'

const token = text(4096)

const describesLogout: Description = {
  summary: 'Log out: revoke this session, or all sessions of the account',
  answers: logoutAnswers,
  limit: logoutLimit,
}

function describesRefresh(ctx: AuthContext, delivery: 'bearer' | 'cookie'): Description {
  return {
    summary: 'Get a new access token and a new refresh token',
    answers: [loginAnswer(ctx, delivery)],
    refuses: [UnauthorizedError, InvalidTokenError, AccountInactiveError],
  }
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
    withBody({
      method: 'POST',
      path: `${base}/refresh`,
      describes: describesRefresh(ctx, 'bearer'),
      loginShaped: true,
      before,
      body: Joi.object<{ refresh_token: string }>({ refresh_token: token }),
      handle: async (_req, res, body) => sendRefreshed(ctx, res, await refresh(ctx, body.refresh_token), 'bearer'),
    }),
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

function cookieRefresh(ctx: AuthContext, { base, before }: RouteSet): Route {
  return withBody({
    method: 'POST',
    path: `${base}/refresh`,
    describes: { ...describesRefresh(ctx, 'cookie'), credential: 'refresh_cookie' },
    loginShaped: true,
    before,
    body: Joi.object({}),
    handle: async (req, res) => {
      const presented = readRefreshCookie(ctx, req)
      if (presented === null) throw new UnauthorizedError()
      try {
        sendRefreshed(ctx, res, await refresh(ctx, presented), 'cookie')
      } catch (error) {
        if (error instanceof InvalidTokenError) await clearEndedCookies(ctx, req, res) // a second use has revoked the session
        throw error
      }
    },
  })
}
