import { hasPasswords } from '../config/has-passwords'
import type { AuthContext } from '../context'
import type { Route } from '../http/routes'
import { perDelivery } from '../session/per-delivery'
import { activationRoutes } from './activation-routes'
import { activationPage, resetPage } from './link-pages'
import { linkRequestRoutes } from './link-request-routes'
import { loginRoutes, sessionLoginRoute } from './login-routes'
import { signupRoutes } from './signup-routes'

/** Routes of accounts with an email and a password; with `passwordLogin` off, with an email only. */
export function localRoutes(ctx: AuthContext): Route[] {
  const { localAccountsEnabled, signupEnabled, backendLinks } = ctx.settings
  if (!localAccountsEnabled) return []
  const takesPasswords = hasPasswords(ctx.settings)
  return [
    // Before the JSON routes on the same path, which handle every request that is no form.
    ...(backendLinks ? activationPage(ctx) : []),
    ...perDelivery(ctx, (line) => [
      ...(signupEnabled ? signupRoutes(ctx, line) : []),
      ...activationRoutes(ctx, line),
      ...(takesPasswords ? loginRoutes(ctx, line) : []),
    ]),
    ...(takesPasswords ? sessionLoginRoute(ctx) : []),
    ...linkRequestRoutes(ctx),
    // After `/password-reset/request` and `/confirm`, which are no tokens.
    ...(takesPasswords && backendLinks ? resetPage(ctx) : []),
  ]
}
