import type { RequestHandler } from 'express'
import type { AuthContext } from '../context'
import type { Route } from '../http/routes'
import { refuseCrossSite, refusingCrossSite, sameSite } from '../http/same-site'
import { readCredential } from './current-auth'
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

/**
 * Protects routes of the library that change something. If the access cookie authenticates the request, the handler rejects cross-site
 * requests.
 */
export function sameSiteWhenByCookie(ctx: AuthContext): RequestHandler {
  return refusingCrossSite((req) => {
    if (readCredential(ctx, req)?.from === 'cookie') refuseCrossSite(ctx, req)
  })
}

/** The guards of our own routes. They send the same refusals as the host's guards, because they are the host's guards. */
export interface RouteGuards {
  requireAuth(): RequestHandler
  requireMfa(): RequestHandler
  requireUser(): RequestHandler
  requireAdmin(): RequestHandler
  requireSession(): RequestHandler
}
