import type { AuthContext } from '../context'
import type { Route } from '../http/routes'
import { perDelivery } from '../session/per-delivery'
import { activationRoutes } from './activation-routes'
import { linkRequestRoutes } from './link-request-routes'
import { loginRoutes } from './login-routes'
import { signupRoutes } from './signup-routes'

/** Accounts with an email and a password. */
export function localRoutes(ctx: AuthContext): Route[] {
  return [
    ...perDelivery(ctx, (line) => [
      ...(ctx.settings.signupEnabled ? signupRoutes(ctx, line) : []),
      ...activationRoutes(ctx, line),
      ...loginRoutes(ctx, line),
    ]),
    ...linkRequestRoutes(ctx),
  ]
}
