import type { AuthContext } from '../../context'
import type { Route } from '../../http/routes'
import { routesByDelivery } from '../../sessions/routes-by-delivery'
import { confirmRoute } from './confirm-routes'
import { emailLoginPage } from './link-page'
import { requestRoute } from './request-routes'

/** Returns the routes for a login by a mailed link or code. */
export function emailLoginRoutes(ctx: AuthContext): Route[] {
  const { emailLogin, backendLinks, tokenDelivery } = ctx.settings
  if (emailLogin === 'off') return []
  const hasPage = emailLogin !== 'code' && backendLinks && tokenDelivery !== 'bearer'
  return [
    ...routesByDelivery(ctx, (line) => [requestRoute(ctx, line), confirmRoute(ctx, line)]),
    // These routes come after `/email-login/request` and `/email-login/confirm`, because `:token` would match those paths.
    ...(hasPage ? emailLoginPage(ctx) : []),
  ]
}
