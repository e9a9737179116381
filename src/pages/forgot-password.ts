import { hasPasswords } from '../core/config/has-passwords'
import type { Route } from '../http/routes'
import { awaitMail } from './check-mail'
import { forgotPasswordPage } from './forgot-password-page'
import { requireFields } from './form-fault'
import { pageRouteSets } from './page-lines'
import type { PageSite } from './page-site'
import { signInAddress } from './sign-in-address'

/** Returns the routes of the page that requests a link to reset the password. */
export function forgotPasswordRoutes(site: PageSite): Route[] {
  if (!hasPasswords(site.ctx.settings)) return []
  return pageRouteSets(site, {
    path: '/forgot-password',
    summary: 'The page that requests a mail to set a new password',
    show: ({ ctx, reader, returnTo }, state) => {
      const body = forgotPasswordPage(reader, state, { returnTo, signIn: signInAddress(ctx, reader, returnTo) })
      return { page: 'forgotPassword', title: reader.text('forgot.title'), body }
    },
    async post(visit, fields) {
      requireFields(fields, 'email')
      const { email = '' } = fields
      const { url } = await visit.ask.requestPasswordReset(email)
      return url === null ? awaitMail(visit, { email, from: 'forgotPassword' }) : { to: url }
    },
  })
}
