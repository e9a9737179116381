import type { Route } from '../http/routes'
import { accountPageRoutes } from './account-page'
import { accountPages } from './account-pages'
import { assetRoutes } from './assets'
import { challengeRoutes } from './challenge'
import { checkMailRoutes } from './check-mail'
import { confirmationRoutes } from './confirmation'
import { emailLoginPageRoutes } from './email-login'
import { forgotPasswordRoutes } from './forgot-password'
import { loginPageRoutes } from './login'
import type { PageSite } from './page-site'
import { passkeyLoginPageRoutes } from './passkey-login'
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
    ...loginPageRoutes(site),
    ...emailLoginPageRoutes(site),
    ...passkeyLoginPageRoutes(site),
    ...signupPageRoutes(site),
    ...forgotPasswordRoutes(site),
    ...checkMailRoutes(site),
    ...challengeRoutes(site),
    ...signOutRoutes(site),
    ...confirmationRoutes(site),
    ...accountPageRoutes(site, accountPages),
  ]
}
