import type { Request, RequestHandler } from 'express'
import type { AuthContext } from '../context'
import { ForbiddenError } from '../core/errors'
import { describeStep } from '../http/description'
import type { GuardedAction } from '../http/guard-request'
import { readJsonBody } from '../http/input'
import { step } from '../http/routes'
import { routeRateLimit } from '../rate-limits/rate-limiter'

/** For example a CAPTCHA, after the route's rate limit (`limit`), and before any other limit, hash or query. `req.body` is parsed. */
export function hostGuard(ctx: AuthContext, action: GuardedAction, limit: string): RequestHandler[] {
  const { guardRequest } = ctx
  if (!guardRequest) return []
  const ask = step(async (req, res) => {
    const body = await readJsonBody(req, res)
    await guardRequest(withBody(req, body), { action })
  })
  return [routeRateLimit(ctx, limit), describeStep(ask, { refuses: [ForbiddenError] })]
}

/** The host's own request stays unchanged. */
function withBody(req: Request, body: unknown): Request {
  const presented: Request = Object.create(req)
  return Object.defineProperty(presented, 'body', { value: body })
}
