import type { Request, RequestHandler } from 'express'
import type { AuthContext } from '../context'
import { TooManyRequestsError } from '../errors'
import { describeStep } from '../http/description'
import { step } from '../http/routes'
import { takeClientUnit } from '../limits/take-client'
import { clientKey } from '../throttle/client-key'

/** One client's calls of one route (and its twins): 60 per 60 s unless the host says otherwise. */
export function routeBudget(ctx: AuthContext, route: string): RequestHandler {
  return describeStep(
    step((req) => takeRouteUnit(ctx, route, req)),
    { refuses: [TooManyRequestsError], limit: route },
  )
}

/** The same for a route that also answers past its limit, but then does less. */
export async function isWithinRouteBudget(ctx: AuthContext, route: string, req: Request): Promise<boolean> {
  try {
    await takeRouteUnit(ctx, route, req)
    return true
  } catch (error) {
    if (error instanceof TooManyRequestsError) return false
    throw error
  }
}

async function takeRouteUnit(ctx: AuthContext, route: string, req: Request): Promise<void> {
  await takeClientUnit(ctx, ctx.budgets.routes, [`route:${route}`, clientKey(req.ip)])
}
