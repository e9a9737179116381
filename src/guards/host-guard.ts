import type { Request, RequestHandler } from 'express'
import type { AuthContext } from '../context'
import { ForbiddenError } from '../errors'
import { describeStep } from '../http/description'
import type { GuardedAction } from '../http/guard-request'
import { readJsonBody } from '../http/json-body'
import { step } from '../http/routes'
import { routeBudget } from './route-budget'

/**
 * The host's check in front of what costs something, such as a CAPTCHA, where it has one: behind the route's limit, with the parsed body in
 * `req.body`, and before any other limit, any hash and any query.
 * @param limit the name of the route's limit, which only the check needs
 */
export function hostGuard(ctx: AuthContext, action: GuardedAction, limit: string): RequestHandler[] {
  const { guardRequest } = ctx
  if (!guardRequest) return []
  const ask = step(async (req, res) => {
    const body = await readJsonBody(req, res)
    await guardRequest(withBody(req, body), { action })
  })
  return [routeBudget(ctx, limit), describeStep(ask, { refuses: [ForbiddenError] })]
}

/** Also where there was nothing to parse. The host's own request is not written on. */
function withBody(req: Request, body: unknown): Request {
  const shown: Request = Object.create(req)
  return Object.defineProperty(shown, 'body', { value: body })
}
