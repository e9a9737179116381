import type { Request, RequestHandler } from 'express'
import type { AuthContext } from '../context'
import { ForbiddenError } from '../core/errors'
import { describeStep } from '../http/description'
import type { GuardedAction } from '../http/guard-request'
import { readJsonBody } from '../http/input'
import { step } from '../http/routes'
import { routeRateLimit } from '../rate-limits/rate-limiter'

/**
 * The host's `guardRequest`, after the route's rate limit (`limit`), and before any other limit, hash or query. `req.body` is parsed. With a
 * captcha, the limit alone: no other limit counts wrong answers, and each of them can cost a call of a third party.
 */
export function hostGuard(ctx: AuthContext, action: GuardedAction, limit: string): RequestHandler[] {
  const { guardRequest, captcha } = ctx
  if (!guardRequest) return captcha ? [routeRateLimit(ctx, limit)] : []
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
