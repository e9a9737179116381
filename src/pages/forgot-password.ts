import { hasPasswords } from '../core/config/every-setting'
import { card, type FormState, field, form, type Html, hidden, html, type Part, problem } from '../http/html/document'
import type { Reader } from '../http/html/reader'
import type { Route } from '../http/routes'
import { captchaOfForm, captchaWidget } from './captcha'
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
    async show(visit, state) {
      const { ctx, reader, returnTo } = visit
      const captcha = await captchaWidget(visit, 'link')
      const signIn = signInAddress(ctx, reader, returnTo)
      const body = forgotPasswordPage(reader, state, { returnTo, signIn, captcha: captcha.part })
      return { ...captcha.page, page: 'forgotPassword', title: reader.text('forgot.title'), body }
    },
    async post(visit, fields) {
      requireFields(fields, 'email')
      const { email = '' } = fields
      const { url } = await visit.ask.requestPasswordReset(email, captchaOfForm(visit, fields).captcha)
      return url === null ? awaitMail(visit, { email, from: 'forgotPassword' }) : { to: url }
    },
  })
}

interface ForgotPasswordView {
  readonly returnTo: string | null
  readonly signIn: string
  readonly captcha: Part
}

function forgotPasswordPage(reader: Reader, state: FormState, { returnTo, signIn, captcha }: ForgotPasswordView): Html {
  return card(
    html`<h1>${reader.text('forgot.title')}</h1>
<p class="lead">${reader.text('forgot.lead')}</p>
`,
    problem(state),
    form({
      fields: [
        hidden('return_to', returnTo),
        field(reader, state, { name: 'email', label: reader.text('field.email'), type: 'email', autocomplete: 'username', isFirst: true }),
        captcha,
      ],
      button: reader.text('forgot.button'),
    }),
    html`<p class="below"><a href="${signIn}">${reader.text('forgot.back')}</a></p>
`,
  )
}
