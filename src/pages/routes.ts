import type { Route } from '../http/routes'
import { connections, removeConnection } from './account/connections'
import { deleteAccount } from './account/delete'
import { devices } from './account/devices'
import { email } from './account/email'
import { overview } from './account/overview'
import { addPasskey, passkeyRemoval, passkeyRenaming } from './account/passkeys'
import { password } from './account/password'
import { profile } from './account/profile'
import { authenticator, recoveryCodes, security, turnOffFactor } from './account/security'
import { type AccountPage, accountPageRoutes } from './account-page'
import { challengeRoutes } from './challenge'
import { checkMailRoutes } from './check-mail'
import { confirmationRoutes } from './confirmation'
import { emailLoginPageRoutes } from './email-login'
import { forgotPasswordRoutes } from './forgot-password'
import { loginPageRoutes } from './login'
import { loginTaskRoutes } from './login-tasks'
import { mailedCodeForms } from './mailed-code'
import { assetRoutes, type PageSite } from './page-site'
import { passkeyLoginPageRoutes } from './passkey-login'
import { signOutRoutes } from './sign-out'
import { signupPageRoutes } from './signup'

/** Before the API routes on the same paths: pages handle forms, and pass all other requests on. */
export function pageRoutes(site: PageSite): Route[] {
  if (!site.ctx.settings.pagesEnabled) return loginTaskRoutes(site)
  return [
    ...loginTaskRoutes(site),
    ...assetRoutes(site),
    ...loginPageRoutes(site),
    ...emailLoginPageRoutes(site),
    ...passkeyLoginPageRoutes(site),
    ...signupPageRoutes(site),
    ...forgotPasswordRoutes(site),
    ...checkMailRoutes(site),
    ...mailedCodeForms(site),
    ...challengeRoutes(site),
    ...signOutRoutes(site),
    ...confirmationRoutes(site),
    ...accountPageRoutes(site, accountPages),
  ]
}

/** In the order of the navigation. */
const accountPages: readonly AccountPage[] = [
  overview,
  profile,
  email,
  password,
  security,
  authenticator,
  recoveryCodes,
  turnOffFactor,
  addPasskey,
  passkeyRenaming,
  passkeyRemoval,
  connections,
  removeConnection,
  devices,
  deleteAccount,
]
