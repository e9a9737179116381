import { setSignupReturn } from '../accounts/email-verification/signup-binding'
import { hasPasswords } from '../core/config/every-setting'
import { card, type FormState, field, form, type Html, hidden, html, or, type Part, problem } from '../http/html/document'
import type { Reader } from '../http/html/reader'
import type { Page } from '../http/html/send-page'
import { locationOf } from '../http/return-to'
import type { Route } from '../http/routes'
import { captchaOfForm, captchaWidget } from './captcha'
import { awaitMail } from './check-mail'
import { passwordRule, requireFields } from './form-fault'
import { otherWays } from './login'
import { type GoOn, pageRouteSets } from './page-lines'
import type { Fields, PageSite, Visit } from './page-site'
import { findSignedIn, signInAddress } from './signed-in'

/** An address and a password, or only an address. */
export function signupPageRoutes(site: PageSite): Route[] {
  const { localAccountsEnabled, signupEnabled } = site.ctx.settings
  if (!localAccountsEnabled || !signupEnabled) return []
  return pageRouteSets(site, {
    path: '/signup',
    summary: 'The sign-up page',
    sharesPath: true,
    ...(hasPasswords(site.ctx.settings) && { passwordField: 'password' }),
    sentences: { EMAIL_TAKEN: 'signup.taken' },
    show,
    post: signUp,
  })
}

async function show(visit: Visit, state: FormState): Promise<Page | GoOn> {
  const { ctx, site, req, res, reader, returnTo } = visit
  const home = returnTo === null ? reader.href('/account') : locationOf(returnTo)
  if (req.method !== 'POST' && (await findSignedIn(site, req, res))) return { to: home }
  const signIn = signInAddress(ctx, reader, returnTo)
  const captcha = await captchaWidget(visit, 'signup')
  return {
    ...captcha.page,
    page: 'signup',
    title: reader.text('signup.title'),
    body: signupPage(reader, state, {
      returnTo,
      signIn,
      takesPassword: hasPasswords(ctx.settings),
      rule: passwordRule(ctx, reader),
      captcha: captcha.part,
      links: otherWays(visit, { isConditional: false }),
    }),
  }
}

async function signUp(visit: Visit, fields: Fields): Promise<GoOn> {
  const takesPassword = hasPasswords(visit.ctx.settings)
  requireFields(fields, 'email', ...(takesPassword ? ['password'] : []))
  const { captcha, others } = captchaOfForm(visit, fields)
  const { email = '', password = '', name = '', return_to: _back, ...own } = others
  const signup = await visit.ask.signUp({
    email,
    ...(takesPassword && { password }),
    name: name === '' ? null : name,
    fields: own,
    ...captcha,
  })
  if (signup.activationRequired && visit.returnTo !== null) setSignupReturn(visit.ctx, visit.req, visit.res, visit.returnTo)
  // Without a mailer, `signUp` returns the activation link, and the browser is redirected to it.
  if (signup.activationUrl !== null) return { to: signup.activationUrl }
  if (signup.activationRequired) return awaitMail(visit, { email, from: 'signup' })
  return { to: visit.returnTo === null ? visit.reader.href('/account') : locationOf(visit.returnTo) }
}

interface SignupView {
  readonly returnTo: string | null
  readonly signIn: string
  readonly takesPassword: boolean
  /** Shown before the first try. */
  readonly rule: string
  readonly captcha: Part
  /** Ways without a form. */
  readonly links: readonly Html[]
}

function signupPage(reader: Reader, state: FormState, { returnTo, signIn, takesPassword, rule, captcha, links }: SignupView): Html {
  return card(
    html`<h1>${reader.text('signup.title')}</h1>
`,
    problem(state),
    form({
      fields: [
        hidden('return_to', returnTo),
        field(reader, state, { name: 'name', label: reader.text('account.name'), autocomplete: 'name', isOptional: true }),
        field(reader, state, { name: 'email', label: reader.text('field.email'), type: 'email', autocomplete: 'username', isFirst: true }),
        takesPassword
          ? field(reader, state, {
              name: 'password',
              label: reader.text('field.password'),
              type: 'password',
              autocomplete: 'new-password',
              hint: rule,
            })
          : null,
        captcha,
      ],
      button: reader.text('signup.button'),
    }),
    ...(links.length === 0 ? [] : [or(reader), html`<div class="ways">${links}</div>`]),
    html`<p class="after">${reader.text('signup.has_account')} <a href="${signIn}">${reader.text('login.button')}</a></p>
`,
  )
}
