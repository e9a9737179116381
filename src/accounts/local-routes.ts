import type { AuthContext } from '../context'
import { hasPasswords } from '../core/config/has-passwords'
import type { Route } from '../http/routes'
import { routesByDelivery } from '../sessions/routes-by-delivery'
import { activationRoutes } from './activation-routes'
import { activationPage, resetPage } from './link-pages'
import { linkRequestRoutes } from './link-request-routes'
import { loginRoutes, sessionLoginRoute } from './login-routes'
import { signupRoutes } from './signup-routes'

/** Routes of accounts with an email address and a password. With `passwordLogin: false`, accounts have only an email address. */
export function localRoutes(ctx: AuthContext): Route[] {
  const { localAccountsEnabled, signupEnabled, backendLinks } = ctx.settings
  if (!localAccountsEnabled) return []
  const takesPasswords = hasPasswords(ctx.settings)
  return [
    // The page routes come before the JSON routes on the same path. The JSON routes handle every request that does not send a form.
    ...(backendLinks ? activationPage(ctx) : []),
    ...routesByDelivery(ctx, (line) => [
      ...(signupEnabled ? signupRoutes(ctx, line) : []),
      ...activationRoutes(ctx, line),
      ...(takesPasswords ? loginRoutes(ctx, line) : []),
    ]),
    ...(takesPasswords ? sessionLoginRoute(ctx) : []),
    ...linkRequestRoutes(ctx),
    // The path of this page has a token parameter. So the page comes after `/password-reset/request` and `/confirm`.
    ...(takesPasswords && backendLinks ? resetPage(ctx) : []),
  ]
}
