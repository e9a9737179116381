import { hasPasswords } from '../core/config/every-setting'
import { card, type FormState, field, form, type Html, hidden, html, problem } from '../http/html/document'
import type { Reader } from '../http/html/reader'
import type { Route } from '../http/routes'
import { awaitMail } from './check-mail'
import { requireFields } from './form-fault'
import { pageRouteSets } from './page-lines'
import type { PageSite } from './page-site'
import { signInAddress } from './signed-in'

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

function forgotPasswordPage(reader: Reader, state: FormState, { returnTo, signIn }: { returnTo: string | null; signIn: string }): Html {
  return card(
    html`<h1>${reader.text('forgot.title')}</h1>
<p class="lead">${reader.text('forgot.lead')}</p>
`,
    problem(state),
    form({
      fields: [
        hidden('return_to', returnTo),
        field(reader, state, { name: 'email', label: reader.text('field.email'), type: 'email', autocomplete: 'username', isFirst: true }),
      ],
      button: reader.text('forgot.button'),
    }),
    html`<p class="below"><a href="${signIn}">${reader.text('forgot.back')}</a></p>
`,
  )
}
