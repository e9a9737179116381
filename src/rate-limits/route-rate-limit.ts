import type { Request, RequestHandler } from 'express'
import { clientOf } from '../core/client-key'
import { TooManyRequestsError } from '../core/errors'
import { describeStep } from '../http/description'
import { step } from '../http/routes'
import type { RateLimits } from './rate-limit'
import type { LimitContext } from './rate-limiter'
import { takeClientUnit } from './rate-limiter'

interface RouteContext extends LimitContext {
  readonly rateLimits: Pick<RateLimits, 'routes'>
}

/** Limits the requests of one client to one route. The same route below `/cookie` shares the limit. Default: 60 requests in 60 seconds. */
export function routeRateLimit(ctx: RouteContext, route: string): RequestHandler {
  return describeStep(
    step((req) => takeRouteUnit(ctx, route, req)),
    { refuses: [TooManyRequestsError], limit: route },
  )
}

/**
 * Counts the request like `routeRateLimit`. Returns false if the client exceeded the limit. The caller then does less work and does not reject
 * the request.
 */
export async function isWithinRouteRateLimit(ctx: RouteContext, route: string, req: Request): Promise<boolean> {
  try {
    await takeRouteUnit(ctx, route, req)
    return true
  } catch (error) {
    if (error instanceof TooManyRequestsError) return false
    throw error
  }
}

/**
 * Counts a request of one client to one route.
 * @throws TooManyRequestsError if the client exceeded the limit
 */
export async function takeRouteUnit(ctx: RouteContext, route: string, req: Request): Promise<void> {
  await takeClientUnit(ctx, ctx.rateLimits.routes, [`route:${route}`, clientOf(req)])
}
