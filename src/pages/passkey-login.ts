import { passkeyOfForm } from '../http/html/passkey-form'
import type { Route } from '../http/routes'
import { afterLogin } from './after-login'
import { captchaOfForm } from './captcha'
import { showLogin } from './login'
import { pageRouteSets } from './page-lines'
import type { PageSite } from './page-site'
import { signInAddress } from './signed-in'

/** The page's script fills the form with a passkey. The login page contains the form and shows its errors. */
export function passkeyLoginPageRoutes(site: PageSite): Route[] {
  if (!site.ctx.settings.passkeysEnabled) return []
  return pageRouteSets(site, {
    path: '/passkeys/login',
    summary: 'The form that logs in with a passkey',
    sharesPath: true,
    sentences: { PASSKEY_REJECTED: 'passkey.rejected' },
    show: (visit, state) =>
      visit.req.method === 'POST' ? showLogin(visit, state, 'passkey') : { to: signInAddress(visit.ctx, visit.reader, visit.returnTo) },
    async post(visit, fields) {
      return afterLogin(visit, await visit.ask.logInWithPasskey({ ...passkeyOfForm(fields), ...captchaOfForm(visit, fields).captcha }))
    },
  })
}
