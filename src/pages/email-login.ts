import type { Route } from '../http/routes'
import { captchaOfForm } from './captcha'
import { awaitMail } from './check-mail'
import { requireFields } from './form-fault'
import { addressFormActions, showLogin } from './login'
import { pageRouteSets } from './page-lines'
import type { PageSite } from './page-site'
import { signInAddress } from './signed-in'

/** The login page contains the form and shows its errors. A GET request for this path redirects there. */
export function emailLoginPageRoutes(site: PageSite): Route[] {
  if (site.ctx.settings.emailLogin === 'off') return []
  return pageRouteSets(site, {
    path: '/email-login/request',
    summary: 'The form that requests a mail to log in',
    sharesPath: true,
    show: (visit, state) =>
      visit.req.method === 'POST' ? showLogin(visit, state, 'email') : { to: signInAddress(visit.ctx, visit.reader, visit.returnTo) },
    async post(visit, fields) {
      requireFields(fields, 'email')
      const { email = '' } = fields
      const { ask, returnTo } = visit
      const { loginUrl } = await ask.requestEmailLogin({
        email,
        ...(returnTo !== null && { returnTo }),
        ...captchaOfForm(visit, fields, addressFormActions).captcha,
      })
      return loginUrl === null ? awaitMail(visit, { email, from: 'emailLogin' }) : { to: loginUrl }
    },
  })
}
