import type { RequestHandler } from 'express'
import type { AuthContext } from '../context'
import type { Route } from '../http/routes'
import { sameSite } from '../http/same-site'
import type { Delivery } from './delivery'

/** How a set of routes sends its tokens, and the path of the set. */
export interface RouteSet {
  /** `bearer`: tokens in the body. `cookie`: tokens in cookies, with null in the body. `session`: no tokens, only the session cookie. */
  readonly delivery: Exclude<Delivery, 'both'>
  /** The prefix of each path. */
  readonly base: '' | '/cookie'
  /** The checks that run first. The checks reject requests that another site sends with our cookies. */
  readonly before: readonly RequestHandler[]
}

/**
 * Makes the routes of the configured delivery. `both` has two sets of routes: one set with tokens in the body, and one set with cookies
 * below `/cookie`. Every other delivery has one set.
 */
export function routesByDelivery(ctx: AuthContext, lines: (line: RouteSet) => Route[]): Route[] {
  const inBody: RouteSet = { delivery: 'bearer', base: '', before: [] }
  const ownSite = [sameSite(ctx)]
  const { tokenDelivery } = ctx.settings
  if (tokenDelivery === 'bearer') return lines(inBody)
  if (tokenDelivery === 'both') return [...lines(inBody), ...lines({ delivery: 'cookie', base: '/cookie', before: ownSite })]
  return lines({ delivery: tokenDelivery, base: '', before: ownSite })
}
