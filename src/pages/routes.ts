import type { Route } from '../http/routes'
import { accountRoutes } from './account-page'
import { accountPages } from './account-pages'
import { assetRoutes } from './assets'
import { challengeRoutes } from './challenge'
import { checkMailRoutes } from './check-mail'
import { confirmationRoutes } from './confirmation'
import { emailLoginRoutes } from './email-login'
import { forgotPasswordRoutes } from './forgot-password'
import { loginRoutes } from './login'
import type { PageSite } from './page-site'
import { passkeyLoginRoutes } from './passkey-login'
import { signOutRoutes } from './sign-out'
import { signupPageRoutes } from './signup'

/**
 * Returns the routes of the pages if `pagesEnabled` is true. These routes must come before the API routes on the same paths. They handle
 * forms and pass all other requests on to the API routes.
 */
export function pageRoutes(site: PageSite): Route[] {
  if (!site.ctx.settings.pagesEnabled) return []
  return [
    ...assetRoutes(site),
    ...loginRoutes(site),
    ...emailLoginRoutes(site),
    ...passkeyLoginRoutes(site),
    ...signupPageRoutes(site),
    ...forgotPasswordRoutes(site),
    ...checkMailRoutes(site),
    ...challengeRoutes(site),
    ...signOutRoutes(site),
    ...confirmationRoutes(site),
    ...accountRoutes(site, accountPages),
  ]
}
