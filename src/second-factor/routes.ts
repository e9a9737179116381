import type { AuthContext } from '../context'
import { hasPasswords } from '../core/config/has-passwords'
import type { Route } from '../http/routes'
import type { RouteGuards } from '../sessions/route-guards'
import { routesByDelivery } from '../sessions/routes-by-delivery'
import { enrolmentRoutes } from './enrolment-routes'
import { passwordChangeRoute } from './password-change-route'
import { sessionVerifyRoutes, verifyRoutes } from './verify-routes'

/** Routes of the second factor. With `mfaEnabled` off, only the password change by code remains. */
export function mfaRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  const passwordChange = hasPasswords(ctx.settings) ? routesByDelivery(ctx, (line) => [passwordChangeRoute(ctx, guards, line)]) : []
  if (!ctx.settings.mfaEnabled) return passwordChange
  return [
    ...passwordChange,
    ...routesByDelivery(ctx, (line) => verifyRoutes(ctx, line)),
    ...sessionVerifyRoutes(ctx),
    ...enrolmentRoutes(ctx, guards),
  ]
}
