import type { Request, RequestHandler, Response } from 'express'
import type Joi from 'joi'
import type { AuthContext } from '../context'
import type { Description } from '../http/description'
import { bodyWithFixedResponseTime } from '../http/fixed-response-time'
import { type Route, withBody } from '../http/routes'
import { sameSite } from '../http/same-site'
import { routeRateLimit } from '../rate-limits/rate-limiter'
import { clearEndedCookies } from './current-auth'
import { loginAnswer, loginClient, loginClientWith, sendLogin, sendSessionLogin, sessionLoginAnswer } from './delivery'
import type { AnyLoginResult, LoginClient } from './login'
import type { RouteSet } from './routes-by-delivery'

/** A way to log in by JSON, told once. Its routes of every delivery have the same body, limits, errors and rule. */
export interface LoginOperation<Body> {
  /** Below the prefix; the routes below `/cookie` and `/session` are made from it. */
  readonly path: `/${string}`
  readonly describes: Omit<Description, 'answers'>
  /** The requests of one client are counted under this name. */
  readonly limit?: string
  /** Run before the cross-site check. */
  readonly first?: readonly RequestHandler[]
  /** Run after the cross-site check and the limit. */
  readonly before?: readonly RequestHandler[]
  readonly body: Joi.ObjectSchema<Body>
  /** The response time must reveal nothing about an account. */
  readonly hidesAccount?: true
  /** The login ends other sessions, so the browser loses their cookies. */
  readonly endsSessions?: true
  readonly run: (ctx: AuthContext, req: Request, body: Body, client: LoginClient) => Promise<AnyLoginResult>
  /** Before the response, for example for a cookie that the login has used. */
  readonly after?: (ctx: AuthContext, req: Request, res: Response, result: AnyLoginResult) => Promise<void>
}

export function loginRoute<Body>(ctx: AuthContext, { base, delivery, before }: RouteSet, operation: LoginOperation<Body>): Route {
  const { path, describes, run } = operation
  return routeOf(ctx, operation, {
    path: `${base}${path}`,
    describes: { ...describes, answers: [loginAnswer(ctx, delivery)] },
    before: [...(operation.first ?? []), ...before, ...stepsOf(ctx, operation)],
    handle: async (ctx, req, res, body) => {
      const result = await run(ctx, req, body, loginClient(ctx, req))
      if (operation.endsSessions) await clearEndedCookies(ctx, req, res)
      await operation.after?.(ctx, req, res, result)
      sendLogin(ctx, res, result, delivery)
    },
  })
}

/** The same login with a server-side session, in every delivery. None if the store keeps no sessions. */
export function sessionLoginRoute<Body>(ctx: AuthContext, operation: LoginOperation<Body>, summary?: string): Route[] {
  if (!ctx.store.sessions) return []
  const { path, describes, run } = operation
  return [
    routeOf(ctx, operation, {
      path: `/session${path}`,
      describes: { ...describes, ...(summary !== undefined && { summary }), answers: [sessionLoginAnswer(ctx)] },
      before: [...(operation.first ?? []), sameSite(ctx), ...stepsOf(ctx, operation)],
      handle: async (ctx, req, res, body) => {
        const result = await run(ctx, req, body, loginClientWith(ctx, req, 'session'))
        if (operation.endsSessions) await clearEndedCookies(ctx, req, res)
        await operation.after?.(ctx, req, res, result)
        sendSessionLogin(ctx, res, result)
      },
    }),
  ]
}

function stepsOf<Body>(ctx: AuthContext, { limit, before = [] }: LoginOperation<Body>): readonly RequestHandler[] {
  return limit === undefined ? before : [routeRateLimit(ctx, limit), ...before]
}

type Delivered<Body> = Pick<Route, 'path' | 'describes' | 'before'> & {
  readonly handle: (ctx: AuthContext, req: Request, res: Parameters<Route['handle']>[1], body: Body) => Promise<void>
}

function routeOf<Body>(ctx: AuthContext, { body, hidesAccount }: LoginOperation<Body>, { handle, ...delivered }: Delivered<Body>): Route {
  const route = { ...delivered, method: 'POST', delivers: 'login', body } as const
  if (hidesAccount) return bodyWithFixedResponseTime(ctx, { ...route, handle })
  return withBody({ ...route, handle: (req, res, given) => handle(ctx, req, res, given) })
}
