import type { AuthContext } from '../context'
import type { Route } from '../http/routes'
import { perDelivery } from '../session/per-delivery'
import { confirmRoute } from './confirm-routes'
import { emailLoginPage } from './link-page'
import { requestRoute } from './request-routes'

/** Routes of login by a mailed link or code. */
export function emailLoginRoutes(ctx: AuthContext): Route[] {
  const { emailLogin, backendLinks, tokenDelivery } = ctx.settings
  if (emailLogin === 'off') return []
  const hasPage = emailLogin !== 'code' && backendLinks && tokenDelivery !== 'bearer'
  return [
    ...perDelivery(ctx, (line) => [requestRoute(ctx, line), confirmRoute(ctx, line)]),
    // After `/email-login/request` and `/confirm`, which are no tokens.
    ...(hasPage ? emailLoginPage(ctx) : []),
  ]
}
