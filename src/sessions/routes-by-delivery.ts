import type { RequestHandler } from 'express'
import type { AuthContext } from '../context'
import type { Route } from '../http/routes'
import { refuseCrossSite, refusingCrossSite, sameSite } from '../http/same-site'
import { readCredential } from './current-auth'
import type { Delivery } from './delivery'

export interface RouteSet {
  /** `bearer`: tokens in the body. `cookie`: tokens in cookies, with null in the body. `session`: no tokens, only the session cookie. */
  readonly delivery: Exclude<Delivery, 'both'>
  readonly base: '' | '/cookie'
  /** Run first, and reject requests that another site sends with our cookies. */
  readonly before: readonly RequestHandler[]
}

/** `both` has two sets: tokens in the body, and cookies below `/cookie`. */
export function routesByDelivery(ctx: AuthContext, lines: (line: RouteSet) => Route[]): Route[] {
  const inBody: RouteSet = { delivery: 'bearer', base: '', before: [] }
  const ownSite = [sameSite(ctx)]
  const { tokenDelivery } = ctx.settings
  if (tokenDelivery === 'bearer') return lines(inBody)
  if (tokenDelivery === 'both') return [...lines(inBody), ...lines({ delivery: 'cookie', base: '/cookie', before: ownSite })]
  return lines({ delivery: tokenDelivery, base: '', before: ownSite })
}

/** If the access cookie authenticates the request, cross-site requests are rejected. */
export function sameSiteWhenByCookie(ctx: AuthContext): RequestHandler {
  return refusingCrossSite((req) => {
    if (readCredential(ctx, req)?.from === 'cookie') refuseCrossSite(ctx, req)
  })
}

/** The host's own guards, so our routes send the same refusals. */
export interface RouteGuards {
  requireAuth(): RequestHandler
  requireMfa(): RequestHandler
  requireUser(): RequestHandler
  requireAdmin(): RequestHandler
  requireSession(): RequestHandler
}
