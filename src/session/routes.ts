import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { UnauthorizedError } from '../errors'
import { type Route, step, withBody } from '../http/routes'
import { refuseCrossSite } from '../http/same-site'
import { sendEmpty } from '../http/send'
import { text } from '../http/validate'
import { clearLoginCookies, readRefreshCookie, sendLogin } from './delivery'
import { logOut } from './log-out'
import { refresh } from './refresh'

const token = text(4096)

/** What else of this browser ends with a logout; rooms above this one know. */
export type OnLogout = (req: Request, res: Response) => Promise<void>

/** Delivery `bearer` and `both` answer here in the body; `cookie` in cookies; `both` has twins that do. */
export function sessionRoutes(ctx: AuthContext, onLogout: OnLogout): Route[] {
  const { tokenDelivery } = ctx.settings
  if (tokenDelivery === 'cookie') return cookieRoutes(ctx, '', onLogout)
  return tokenDelivery === 'both'
    ? [...bearerRoutes(ctx, onLogout), ...cookieRoutes(ctx, '/cookie', onLogout)]
    : bearerRoutes(ctx, onLogout)
}

function bearerRoutes(ctx: AuthContext, onLogout: OnLogout): Route[] {
  return [
    withBody({
      method: 'POST',
      path: '/refresh',
      loginShaped: true,
      body: Joi.object<{ refresh_token: string }>({ refresh_token: token }),
      handle: async (_req, res, body) => sendLogin(ctx, res, await refresh(ctx, body.refresh_token), 'bearer'),
    }),
    withBody({
      method: 'POST',
      path: '/logout',
      body: Joi.object<{ refresh_token: string; all_sessions: boolean }>({ refresh_token: token, all_sessions: allSessions }),
      handle: async (req, res, body) => {
        await logOut(ctx, body.refresh_token, { allSessions: body.all_sessions })
        await onLogout(req, res)
        sendEmpty(res)
      },
    }),
  ]
}

const allSessions = Joi.boolean().optional().default(false)

function cookieRoutes(ctx: AuthContext, base: '' | '/cookie', onLogout: OnLogout): Route[] {
  const before = [step((req) => refuseCrossSite(ctx.settings, req))]
  return [
    withBody({
      method: 'POST',
      path: `${base}/refresh`,
      loginShaped: true,
      before,
      body: Joi.object({}),
      handle: async (req, res) => {
        const presented = readRefreshCookie(ctx, req)
        if (presented === null) throw new UnauthorizedError()
        sendLogin(ctx, res, await refresh(ctx, presented), 'cookie')
      },
    }),
    withBody({
      method: 'POST',
      path: `${base}/logout`,
      before,
      body: Joi.object<{ all_sessions: boolean }>({ all_sessions: allSessions }),
      handle: async (req, res, body) => {
        const presented = readRefreshCookie(ctx, req)
        if (presented !== null) await logOut(ctx, presented, { allSessions: body.all_sessions })
        await onLogout(req, res)
        clearLoginCookies(ctx, res)
        sendEmpty(res)
      },
    }),
  ]
}
