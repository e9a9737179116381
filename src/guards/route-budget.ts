import type { RequestHandler } from 'express'
import type { AuthContext } from '../context'
import { TooManyRequestsError } from '../errors'
import { step } from '../http/routes'
import { clientKey } from '../throttle/client-key'
import { attempt, counterKey } from '../throttle/throttle'

/** One client's calls of one route (and its twins): 60 per 60 s unless the host says otherwise (contract section 13). */
export function routeBudget(ctx: AuthContext, route: string): RequestHandler {
  return step(async (req) => {
    try {
      await attempt(ctx.counters, ctx.routeBudget, counterKey(`route:${route}`, clientKey(req.ip)), TooManyRequestsError)
    } catch (error) {
      if (error instanceof TooManyRequestsError) ctx.events.emit('throttled', { code: error.code, route })
      throw error
    }
  })
}
