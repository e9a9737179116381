import { setSignupReturn } from '../accounts/email-verification/signup-binding'
import { hasPasswords } from '../core/config/every-setting'
import { NotFoundError } from '../core/errors'
import { card, type FormState, field, form, type Html, hidden, html, or, type Part, problem } from '../http/html/document'
import { needsScript, passkeyOfForm } from '../http/html/passkey-form'
import type { Reader } from '../http/html/reader'
import type { Page } from '../http/html/send-page'
import { locationOf } from '../http/return-to'
import type { Route } from '../http/routes'
import type { BoundSignup } from '../router/request-service/request-service'
import { captchaOfForm, captchaWidgets } from './captcha'
import { awaitMail } from './check-mail'
import { FormFault, passwordRule, requireFields } from './form-fault'
import { type InvitationView, invitationNote, invitationOfPage } from './invitation-note'
import { otherWays } from './login'
import { type GoOn, pageRouteSets } from './page-lines'
import type { Fields, PageSite, Visit } from './page-site'
import { findSignedIn, signInAddress } from './signed-in'

/** An address, and a password or a passkey, or only an address. */
export function signupPageRoutes(site: PageSite): Route[] {
  const { localAccountsEnabled, signupEnabled, signupWith } = site.ctx.settings
  if (!localAccountsEnabled || !signupEnabled) return []
  return [
    ...pageRouteSets(site, {
      path: '/signup',
      summary: 'The sign-up page',
      sharesPath: true,
      ...(hasPasswords(site.ctx.settings) && { passwordField: 'password' }),
      sentences,
      show,
      ...(signupWith.includes('password') && { post: signUp }),
    }),
    ...(signupWith.includes('password') ? [] : [nothingToPost]),
    ...(signupWith.includes('passkey') ? passkeyRoutes(site) : []),
  ]
}

/** As without pages: 404, not 405. */
const nothingToPost: Route = {
  method: 'POST',
  path: '/signup',
  describes: { summary: 'Nothing: only a passkey signs up', answers: [], isPage: true },
  handle: () => {
    throw new NotFoundError()
  },
}

const sentences = { EMAIL_TAKEN: 'signup.taken', PASSKEY_INVALID: 'passkey.invalid' } as const

/** The page's script fills the form with a new passkey. The sign-up page contains the form and shows its errors. */
function passkeyRoutes(site: PageSite): Route[] {
  return pageRouteSets(site, {
    path: '/signup/passkey',
    summary: 'The form that signs up with a passkey',
    sharesPath: true,
    sentences,
    show: (visit, state) =>
      visit.req.method === 'POST' ? show(visit, state) : { to: visit.reader.href('/signup', { return_to: visit.returnTo }) },
    post: signUpWithPasskey,
  })
}

async function show(visit: Visit, state: FormState): Promise<Page | GoOn> {
  const { ctx, site, req, res, reader, returnTo } = visit
  const home = returnTo === null ? reader.href('/account') : locationOf(returnTo)
  if (req.method !== 'POST' && (await findSignedIn(site, req, res))) return { to: home }
  const signIn = signInAddress(ctx, reader, returnTo)
  const takesPasskey = ctx.settings.signupWith.includes('passkey')
  const captcha = await captchaWidgets(visit, { form: ['signup'], passkey: ctx.settings.passkeysEnabled ? ['login'] : [] })
  return {
    ...captcha.page,
    page: 'signup',
    title: reader.text('signup.title'),
    body: signupPage(reader, state, {
      returnTo,
      signIn,
      takesForm: ctx.settings.signupWith.includes('password'),
      takesPassword: hasPasswords(ctx.settings),
      takesPasskey,
      rule: passwordRule(ctx, reader),
      captcha: captcha.form,
      invitation: await invitationOfPage(visit),
      links: otherWays(visit, { isConditional: false, captcha: captcha.passkey, saysScript: !takesPasskey }),
    }),
  }
}

async function signUp(visit: Visit, fields: Fields): Promise<GoOn> {
  const takesPassword = hasPasswords(visit.ctx.settings)
  requireFields(fields, 'email', ...(takesPassword ? ['password'] : []))
  const { captcha, others } = captchaOfForm(visit, fields)
  const { email = '', password = '', name = '', return_to: _back, ...own } = others
  const account = { email, ...(takesPassword && { password }), name: name === '' ? null : name }
  const signup = await visit.ask.signUp({ ...account, fields: own, ...captcha })
  return afterSignup(visit, email, signup)
}

/** Without a credential, the page shows why the browser made none. */
async function signUpWithPasskey(visit: Visit, fields: Fields): Promise<GoOn> {
  requireFields(fields, 'email')
  const { captcha, others } = captchaOfForm(visit, fields)
  const { email = '', name: typed = '', return_to: _back, credential = '', challenge_token = '', ...own } = others
  const name = typed === '' ? null : typed
  if (credential === '') {
    await visit.ask.passkeySignupOptions({ email, name }) // if the script's request failed, throws the same error
    throw new FormFault({ form: 'passkey.not_made' })
  }
  const made = passkeyOfForm({ credential, challenge_token })
  return afterSignup(visit, email, await visit.ask.signUpWithPasskey({ ...made, email, name, fields: own, ...captcha }))
}

async function afterSignup(visit: Visit, email: string, signup: BoundSignup): Promise<GoOn> {
  if (signup.activationRequired && visit.returnTo !== null) setSignupReturn(visit.ctx, visit.req, visit.res, visit.returnTo)
  // Without a mailer, `signUp` returns the activation link, and the browser is redirected to it.
  if (signup.activationUrl !== null) return { to: signup.activationUrl }
  if (signup.activationRequired) return awaitMail(visit, { email, from: 'signup' })
  return { to: visit.returnTo === null ? visit.reader.href('/account') : locationOf(visit.returnTo) }
}

interface SignupView {
  readonly returnTo: string | null
  readonly signIn: string
  /** False: a passkey is the only way to sign up. */
  readonly takesForm: boolean
  readonly takesPassword: boolean
  readonly takesPasskey: boolean
  /** Shown before the first try. */
  readonly rule: string
  readonly captcha: Part
  readonly invitation: InvitationView | null
  /** Ways without a form. */
  readonly links: readonly Html[]
}

function signupPage(reader: Reader, state: FormState, view: SignupView): Html {
  const { signIn, takesForm, takesPasskey, links } = view
  const ways = [...(takesForm && takesPasskey ? [passkeySignup(reader, view, 'second')] : []), ...links]
  return card(
    html`<h1>${reader.text('signup.title')}</h1>
`,
    problem(state),
    invitationNote(reader, view.invitation),
    takesForm ? addressForm(reader, state, view) : passkeySignup(reader, view, 'first', whoFields(reader, state, view)),
    ...(ways.length === 0 ? [] : [or(reader), html`<div class="ways">${ways}</div>`]),
    html`<p class="after">${reader.text('signup.has_account')} <a href="${signIn}">${reader.text('login.button')}</a></p>
`,
  )
}

function addressForm(reader: Reader, state: FormState, view: SignupView): Html {
  const { returnTo, takesPassword, rule, captcha } = view
  const password = {
    name: 'password',
    label: reader.text('field.password'),
    type: 'password',
    autocomplete: 'new-password',
    hint: rule,
  } as const
  return form({
    action: reader.href('/signup'),
    attributes: html` data-signup`,
    fields: [
      hidden('return_to', returnTo),
      ...whoFields(reader, state, view),
      takesPassword ? field(reader, state, password) : null,
      captcha,
    ],
    button: reader.text('signup.button'),
  })
}

function whoFields(reader: Reader, state: FormState, { invitation }: Pick<SignupView, 'invitation'>): Html[] {
  const value = invitation?.email ?? ''
  return [
    field(reader, state, { name: 'name', label: reader.text('account.name'), autocomplete: 'name', isOptional: true }),
    field(reader, state, {
      name: 'email',
      label: reader.text('field.email'),
      type: 'email',
      autocomplete: 'username',
      value,
      isFirst: true,
    }),
  ]
}

/** Hidden until the page's script runs. @param own left out: the script copies the fields of the other form */
function passkeySignup(reader: Reader, { returnTo, captcha }: SignupView, look: 'first' | 'second', own?: readonly Html[]): Html {
  const from = own ? null : html` data-from="form[data-signup]"`
  return html`${form({
    action: reader.href('/signup/passkey'),
    attributes: html` data-passkey="create" data-options-url="${reader.href('/signup/passkey/options')}" data-about="email name"${from} hidden`,
    fields: [
      hidden('return_to', returnTo),
      ...(own ?? [hidden('email', ''), hidden('name', '')]),
      hidden('credential', ''),
      hidden('challenge_token', ''),
      captcha,
    ],
    button: reader.text('signup.with_passkey'),
    ...(look === 'second' && { look }),
  })}${own ? html`<p class="note" data-unsupported hidden>${reader.text('passkey.unsupported')}</p>` : null}${needsScript(reader)}`
}
