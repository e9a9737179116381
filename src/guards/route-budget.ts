import type { RequestHandler } from 'express'
import type { AuthContext } from '../context'
import { TooManyRequestsError } from '../errors'
import { describeStep } from '../http/description'
import { step } from '../http/routes'
import { takeUnit } from '../limits/take-unit'
import { clientKey } from '../throttle/client-key'

/** One client's calls of one route (and its twins): 60 per 60 s unless the host says otherwise (contract section 13). */
export function routeBudget(ctx: AuthContext, route: string): RequestHandler {
  const take = step(async (req) => {
    await takeUnit(ctx, ctx.budgets.routes, [`route:${route}`, clientKey(req.ip)])
  })
  return describeStep(take, { refuses: [TooManyRequestsError] })
}
