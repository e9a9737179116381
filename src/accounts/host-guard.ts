import type { Request, RequestHandler } from 'express'
import type { AuthContext } from '../context'
import { ForbiddenError } from '../core/errors'
import { describeStep } from '../http/description'
import type { GuardedAction } from '../http/guard-request'
import { readJsonBody } from '../http/input'
import { step } from '../http/routes'
import { routeRateLimit } from '../rate-limits/rate-limiter'

/**
 * Returns the host's own check, such as a CAPTCHA. Returns an empty list if the host has no check. The check runs after the rate limit of
 * the route, and before any other rate limit, hash or query. `req.body` then contains the parsed body.
 * @param limit the name of the route's rate limit; used only if the host has a check
 */
export function hostGuard(ctx: AuthContext, action: GuardedAction, limit: string): RequestHandler[] {
  const { guardRequest } = ctx
  if (!guardRequest) return []
  const ask = step(async (req, res) => {
    const body = await readJsonBody(req, res)
    await guardRequest(withBody(req, body), { action })
  })
  return [routeRateLimit(ctx, limit), describeStep(ask, { refuses: [ForbiddenError] })]
}

/** Returns a copy of the request with the parsed body. The host's own request stays unchanged. */
function withBody(req: Request, body: unknown): Request {
  const presented: Request = Object.create(req)
  return Object.defineProperty(presented, 'body', { value: body })
}
